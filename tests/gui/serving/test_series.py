from gui.serving.scenes import member_id
from kafila.gui.serving.series import SeriesBook


def test_a_computer_keeps_its_place_whatever_happens_to_the_ring() -> None:
    book = SeriesBook()
    book.meet(member_id(at) for at in range(3))
    book.meet((member_id(2), member_id(0)))
    book.meet((member_id(4), member_id(1)))
    assert [book.place(member_id(at)) for at in (0, 1, 2, 4)] == [0, 1, 2, 3]
    book.clear()
    assert book.place(member_id(4)) == 0

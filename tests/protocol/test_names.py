import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafila.domain.capability import Machine, MachineKind
from kafila.protocol.names import MAX_NAME, clean_machine, clean_name


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Attic mini", "Attic mini"),
        ("  two \t words\n", "two words"),
        ("\u202eexe.gnp", "exe.gnp"),
        ("\x1b[31mred", "[31mred"),
        ("Dachstube \u2013 gr\u00fcn", "Dachstube \u2013 gr\u00fcn"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),
        ("x" * 500, "x" * MAX_NAME),
        ("\ud800", ""),
    ],
)
def test_names_are_shown_without_what_could_disguise_them(said: str, shown: str) -> None:
    assert clean_name(said) == shown


@given(st.text())
def test_a_clean_name_stays_as_it_is(said: str) -> None:
    once = clean_name(said)
    assert clean_name(once) == once
    assert len(once) <= MAX_NAME
    assert "\n" not in once


def test_a_computer_without_a_name_gets_one() -> None:
    said = Machine(name="\n", owner="Ada\x00", kind=MachineKind.LAPTOP, system="s" * 500)
    shown = clean_machine(said)
    assert (shown.name, shown.owner, shown.kind, len(shown.system)) == ("A computer", "Ada", MachineKind.LAPTOP, 80)

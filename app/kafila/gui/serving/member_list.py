"""The computers as a list, where the window is too narrow for names round the ring."""

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from kafila.domain.plan import PathKind
from kafila.domain.snapshot import Serving
from kafila.gui.serving import figures
from kafila.gui.serving.ring_look import NodeLook, NodeState, RingLook
from kafila.gui.serving.small import Dot, HeadBadge
from kafila.gui.theme import Role, Theme
from kafila.gui.widgets import Line, Pill, PillKind, Text, Tone

ROW = 34


class MemberRow(QAbstractButton):
    """One computer: its colour, its name, how it is reached, how busy it is."""

    def __init__(self, theme: Theme, series: int) -> None:
        super().__init__()
        self._theme = theme
        self._name = Text(theme, "", Role.BODY)
        self._lantern = HeadBadge(theme)
        self._pill = Pill(theme, "")
        self._busy = Text(theme, "", Role.SMALL, Tone.MUTED)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.px(14), 0, theme.px(14), 0)
        layout.setSpacing(theme.px(8))
        self._name.setMinimumWidth(10)
        layout.addWidget(Dot(theme, series))
        layout.addWidget(self._name)
        layout.addWidget(self._lantern)
        layout.addStretch(1)
        layout.addWidget(self._pill)
        layout.addWidget(self._busy)
        for part in (self._name, self._lantern, self._pill, self._busy):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:  # noqa: N802
        """One line."""
        return QSize(200, self._theme.px(ROW))

    def show_look(self, look: NodeLook, path: PathKind | None) -> None:
        """Show a computer as it is now."""
        self.setAccessibleName(look.said)
        metrics = QFontMetricsF(self._name.font())
        room = self._theme.px(150)
        self._name.set_text(metrics.elidedText(look.name, Qt.TextElideMode.ElideRight, room))
        self._lantern.setVisible(look.head)
        away = look.state is NodeState.AWAY
        if away:
            self._pill.show_as(self.tr("Away"), PillKind.LOST)
        else:
            self._pill.show_as(self.tr("Relayed"), PillKind.RELAYED)
        self._pill.setVisible(away or path is PathKind.RELAYED)
        works = look.state is NodeState.WORKS
        self._busy.set_text(figures.percent(look.busy) if works else self.tr("waits"))
        self._busy.setVisible(not away)

    def paintEvent(self, e: QPaintEvent) -> None:  # noqa: ARG002, N802
        """A soft ground under the pointer; a line inside when it has the focus."""
        painter = QPainter(self)
        if self.underMouse():
            painter.fillRect(self.rect(), self._theme.colour("hover"))
        if self.hasFocus():
            painter.setPen(QPen(self._theme.colour("focus"), 2))
            painter.drawRect(QRectF(self.rect()).adjusted(1, 1, -1, -1))
        painter.end()


class MemberList(QWidget):
    """All computers in ring order; `pressed` with the place of one."""

    pressed = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._rows: list[MemberRow] = []
        self._members: tuple[str, ...] = ()
        head = QHBoxLayout()
        head.setContentsMargins(theme.px(14), theme.px(4), theme.px(14), theme.px(4))
        head.addWidget(Text(theme, self.tr("Members"), Role.SMALL, Tone.MUTED))
        head.addStretch(1)
        head.addWidget(Text(theme, self.tr("Busy"), Role.SMALL, Tone.MUTED))
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self._layout.addLayout(head)
        self._body = QVBoxLayout()
        self._body.setSpacing(0)
        self._layout.addLayout(self._body)
        self._layout.addStretch(1)

    @property
    def rows(self) -> tuple[MemberRow, ...]:
        """The rows, in ring order."""
        return tuple(self._rows)

    def show_ring(self, look: RingLook, serving: Serving) -> None:
        """Show the ring as it is now."""
        members = tuple(node.member for node in look.nodes)
        if members != self._members:
            self._members = members
            self._start(look)
        arriving = {edge.to_member: edge.path for edge in serving.edges}
        for row, node in zip(self._rows, look.nodes, strict=True):
            row.show_look(node, arriving.get(node.member))

    def _start(self, look: RingLook) -> None:
        self._rows.clear()
        while (item := self._body.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.deleteLater()
        for at, node in enumerate(look.nodes):
            row = MemberRow(self._theme, node.series)
            row.clicked.connect(lambda _=False, at=at: self.pressed.emit(at))
            self._rows.append(row)
            self._body.addWidget(Line())
            self._body.addWidget(row)
            row.show()

"""Python's collector of cycles, kept to Qt's thread.

Python collects in whichever thread happens to allocate when a threshold is passed. A timer, a socket
notifier or a widget that is destroyed in another thread than its own leaves Qt with a dangling
pointer, and the window's process ends at its next event.
"""

import gc

from PySide6.QtCore import QObject, QTimer

PAUSE_MS = 500


class QtThreadCollector(QObject):
    """Collects in the thread that made it, as often as Python's thresholds ask for; Python's own collector is off."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self, interval=PAUSE_MS)
        self._timer.timeout.connect(self.collect_if_due)
        self._timer.start()

    def collect_if_due(self) -> None:
        """Collect the oldest generation whose threshold is passed, and the younger ones with it."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        for generation in reversed(range(len(counts))):
            if 0 < thresholds[generation] < counts[generation]:
                gc.collect(generation)
                return

    def stop(self) -> None:
        """Collect what is left here, and let Python collect by itself again."""
        self._timer.stop()
        gc.collect()
        gc.enable()

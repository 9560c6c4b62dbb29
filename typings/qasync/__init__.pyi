import asyncio

from PySide6.QtWidgets import QApplication

class QEventLoop(asyncio.AbstractEventLoop):
    def __init__(self, app: QApplication | None = None) -> None: ...

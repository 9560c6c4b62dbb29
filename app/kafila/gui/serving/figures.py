"""Figures as people read them, in their own locale's digits and points."""

from PySide6.QtCore import QCoreApplication, QLocale


def number(value: float, decimals: int) -> str:
    """A number with so many decimals."""
    locale = QLocale()
    locale.setNumberOptions(QLocale.NumberOption.OmitGroupSeparator)
    return locale.toString(float(value), "f", decimals)


def rate(value: float) -> str:
    """Words a second: one decimal, none from 100 on."""
    return number(value, 1 if value < 99.95 else 0)


def percent(share: float) -> str:
    """A share of 0 to 1."""
    shown = number(min(max(share, 0.0), 1.0) * 100, 0)
    return QCoreApplication.translate("Figures", "{number} %").format(number=shown)


def milliseconds(value: float) -> str:
    """A short time."""
    if value < 1:
        return QCoreApplication.translate("Figures", "<1 ms")
    return QCoreApplication.translate("Figures", "{number} ms").format(number=number(value, 0))


def seconds(value: float) -> str:
    """A time in words."""
    whole = round(value)
    if whole == 1:
        return QCoreApplication.translate("Figures", "1 second")
    return QCoreApplication.translate("Figures", "{number} seconds").format(number=number(whole, 0))


def seconds_short(value: float) -> str:
    """A time with one decimal and its unit."""
    return QCoreApplication.translate("Figures", "{number} s").format(number=number(value, 1))


def clock(value: float) -> str:
    """Minutes and seconds left, as 0:36."""
    whole = max(0, round(value))
    return f"{number(whole // 60, 0)}:{number(whole % 60, 0).rjust(2, QLocale().zeroDigit())}"


def bytes_per_second(value: float) -> str:
    """A flow of bytes."""
    if value < 1000:
        return QCoreApplication.translate("Figures", "{number} B/s").format(number=number(value, 0))
    if value < 10**6:
        return QCoreApplication.translate("Figures", "{number} kB/s").format(number=number(value / 1000, 0))
    return QCoreApplication.translate("Figures", "{number} MB/s").format(number=number(value / 10**6, 1))


def parts(count: int) -> str:
    """How many blocks a computer holds."""
    if count == 1:
        return QCoreApplication.translate("Figures", "1 part")
    return QCoreApplication.translate("Figures", "{number} parts").format(number=count)


def ago(value: float) -> str:
    """How long since, in minutes and seconds."""
    whole = max(0, round(value))
    if whole < 60:
        return QCoreApplication.translate("Figures", "{number} s ago").format(number=number(whole, 0))
    return QCoreApplication.translate("Figures", "{minutes} min {seconds} s ago").format(
        minutes=number(whole // 60, 0), seconds=number(whole % 60, 0)
    )

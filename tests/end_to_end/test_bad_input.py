"""What cannot be done is said in one sentence that says what to do, and leaves nothing behind."""

import json
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from end_to_end.sessions import link_of, start_host
from helpers.processes import Finished, Home, Homes
from kafila import __version__
from kafila.assets import asset
from kafila.protocol.invitation import make_code
from kafila.protocol.words import WordList

pytestmark = [pytest.mark.loopback, pytest.mark.timeout(200)]

NOWHERE = "127.0.0.1:9"
"""Where nobody listens: the port of a service that is long gone."""

WORDS = WordList.from_text(asset("words.txt").read_text(encoding="utf-8"))
NAMEPLATE = 900_000_001
"""So long that no session on this computer has drawn it."""

CODE = make_code(NAMEPLATE, b"kafil", WORDS).spoken()
LINK = f"kafila://join/{CODE}?v=1&at={NOWHERE}"
FIRST, SECOND, THIRD, CHECK = CODE.split("-")[1:]

Command = tuple[object, ...]

KEPT = {"device.key", "settings.json"}
"""Files that a computer has once Kafila was started on it."""

COMMANDS = ("window", "demo", "host", "join", "rendezvous", "plan", "bench", "doctor", "engine")


def check_refusal(home: Home, ended: Finished, sentence: str, *, code: int = 1) -> None:
    """That it was refused in words, of which these are a part, and that nothing half made is left."""
    assert ended.code == code, ended.said
    assert sentence in ended.err
    assert "Traceback" not in ended.said
    assert "Kafila itself failed" not in ended.said
    assert ended.out == ""
    assert {Path(file).name for file in home.files()} <= KEPT


def check_refusals(homes: Homes, commands: Sequence[Command], sentence: str) -> None:
    """The same of several commands, each in a home of its own and all at once."""
    started = [(home, home.start(*command, "--json")) for command in commands for home in (homes.new(),)]
    for home, process in started:
        process.close_input()
        check_refusal(home, process.finish(), sentence)


def members(model: Path) -> list[Command]:
    """A host and a joiner, each with nothing wrong but what is added."""
    return [("host", "--model", model, "--members", 2), ("join", LINK)]


# The command line


@pytest.mark.parametrize(
    "line",
    [
        "frobnicate",
        "--frobnicate",
        "join",
        f"join {CODE} --frobnicate",
        "host --model demo",
        "host --members 2",
        "host --model demo --members none",
        "host --model demo --members 2 --admit nobody",
        "host --model demo --members 2 --rendezvous somewhere",
        f"join {CODE} --rendezvous 127.0.0.1:47470#a-fingerprint",
        f"join {CODE} --rendezvous 127.0.0.1:47470#{'5a' * 15}",
        "demo --headless --members 0",
        "demo --headless --temperature 9",
        "demo --headless --max-tokens -1",
    ],
)
def test_a_command_line_that_is_none(home: Home, line: str) -> None:
    ended = home.run(*line.split())
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("usage: kafila")
    assert "error: " in ended.err.splitlines()[-1]
    assert home.files() == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(home: Home, command: str) -> None:
    ended = home.run(command, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"usage: kafila {command}")


def test_help_names_the_commands(home: Home) -> None:
    ended = home.run("--help")
    assert (ended.code, ended.err) == (0, "")
    for command in ("demo", "host", "join", "rendezvous"):
        assert command in ended.out


def test_the_version(home: Home) -> None:
    ended = home.run("--version")
    assert (ended.code, ended.out, ended.err) == (0, f"kafila {__version__}\n", "")


@pytest.mark.mlx
def test_nobody_reads_on(home: Home, tiny: Path) -> None:
    """As with “| head”: it ends, and says nothing of it."""
    for line in (["--help"], ["rendezvous", "--listen", "127.0.0.1:0"], ["host", "--model", tiny, "--members", 1]):
        ended = home.run_unread(*line)
        assert (ended.code, ended.err) == (1, "")


@pytest.mark.skipif(sys.platform == "darwin", reason="there is always a screen")
def test_a_window_without_a_screen(home: Home) -> None:
    check_refusal(home, home.run(), "There is no screen")


def test_a_profile_name_that_leads_elsewhere(home: Home) -> None:
    check_refusal(home, home.run("join", LINK, "--json", "--profile", "../other"), "That is not a profile name")


# Codes and links


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("hello", "This is not a session code"),
        (f"{FIRST}-{SECOND}-{THIRD}-{CHECK}", "The number is missing"),
        (f"{NAMEPLATE}-{FIRST}-{SECOND}-{THIRD}", "The code is not complete"),
        (f"{CODE}z", f"Did you mean {CHECK}?"),
        (f"{NAMEPLATE}-{SECOND}-{FIRST}-{THIRD}-{CHECK}", "one of them is wrong"),
        (LINK.replace(FIRST, f"z{FIRST}"), "This link is damaged"),
        (LINK.replace("v=1", "v=2"), "This link is from another version of Kafila"),
        (LINK, f"Nobody can be reached at {NOWHERE}"),
        (CODE, f"No session answers to {NAMEPLATE}"),
    ],
    ids=["nothing", "no number", "short", "slip", "swapped", "damaged", "version", "nobody there", "unknown"],
)
def test_a_code_that_opens_nothing(home: Home, code: str, sentence: str) -> None:
    check_refusal(home, home.run("join", code, "--json"), sentence)


@pytest.mark.mlx
def test_a_code_whose_session_has_ended(homes: Homes, tiny: Path) -> None:
    host = start_host(homes.new(), tiny)
    link = link_of(host)
    host.close_input()
    host.end()
    home = homes.new()
    check_refusal(home, home.run("join", link, "--json"), "Nobody can be reached at")


# Addresses


@pytest.fixture
def taken() -> Iterator[Callable[[socket.SocketKind], int]]:
    """Takes a port, and says which."""
    with ExitStack() as held:

        def take(kind: socket.SocketKind) -> int:
            port = held.enter_context(socket.socket(socket.AF_INET, kind))
            port.bind(("127.0.0.1", 0))
            if kind is socket.SOCK_STREAM:
                port.listen()
            return port.getsockname()[1]

        yield take


def test_a_port_in_use(homes: Homes, tiny: Path, taken: Callable[[socket.SocketKind], int]) -> None:
    tcp, udp = f"127.0.0.1:{taken(socket.SOCK_STREAM)}", f"127.0.0.1:{taken(socket.SOCK_DGRAM)}"
    commands: list[Command] = [
        ("host", "--model", tiny, "--members", 2, "--listen", tcp),
        ("rendezvous", "--listen", tcp),
        ("rendezvous", "--listen", udp),
        ("join", LINK, "--listen", udp),
    ]
    check_refusals(homes, commands, "in use")


def test_an_address_that_is_none(homes: Homes, tiny: Path) -> None:
    commands = [(*command, "--listen", "somewhere") for command in members(tiny)]
    check_refusals(homes, commands, "“somewhere” is not an address")


def test_an_address_of_another_computer(homes: Homes, tiny: Path) -> None:
    there = "203.0.113.9:4700"
    commands = [(*command, "--listen", there) for command in (*members(tiny), ("rendezvous",))]
    check_refusals(homes, commands, "203.0.113.9")


def test_a_rendezvous_that_is_not_there(homes: Homes, tiny: Path) -> None:
    for command in (("host", "--model", tiny, "--members", 2), ("join", LINK)):
        home = homes.new()
        check_refusal(
            home, home.run(*command, "--json", "--rendezvous", NOWHERE), f"Nobody can be reached at {NOWHERE}"
        )


@pytest.mark.mlx
@pytest.mark.skipif(sys.platform != "linux", reason="writes the settings where Linux has them")
def test_the_groups_rendezvous_is_for_sessions_with_others(homes: Homes, tiny: Path) -> None:
    home = homes.new()
    settings = home.folder / "config" / "kafila" / "profiles" / "default" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"rendezvous": NOWHERE}))
    refused = home.run("host", "--model", tiny, "--members", 2, "--json")
    assert refused.code == 1
    assert f"Nobody can be reached at {NOWHERE}" in refused.err
    tried = home.run("demo", "--headless", "--members", 1, "--max-tokens", 2, "--json")
    assert tried.code == 0, tried.err


# Models


def _no_folder(_: Path) -> None:
    pass


def _a_file(folder: Path) -> None:
    folder.write_text("not a model")


def _empty(folder: Path) -> None:
    folder.mkdir()


def _copy_with(tiny: Path, change: Callable[[Path], object]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        shutil.copytree(tiny, folder)
        change(folder)

    return make


def _configured(**changes: object) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return change


@pytest.mark.mlx
class TestModels:
    @pytest.mark.parametrize("make", [_no_folder, _a_file, _empty])
    def test_no_model(self, homes: Homes, tmp_path: Path, make: Callable[[Path], None]) -> None:
        make(tmp_path / "model")
        self.check(homes, tmp_path / "model", "There is no model in “model”")

    @pytest.mark.parametrize("left", [0, 100, 300_000])
    def test_a_truncated_model(self, homes: Homes, tiny: Path, tmp_path: Path, left: int) -> None:
        _copy_with(tiny, lambda folder: os.truncate(folder / "model.safetensors", left))(tmp_path / "model")
        self.check(homes, tmp_path / "model", "The model in “model” is incomplete or damaged")

    def test_a_damaged_configuration(self, homes: Homes, tiny: Path, tmp_path: Path) -> None:
        _copy_with(tiny, lambda folder: (folder / "config.json").write_text("{"))(tmp_path / "model")
        self.check(homes, tmp_path / "model", "Its file “config.json” is not whole")

    def test_a_family_that_cannot_be_divided(self, homes: Homes, tiny: Path, tmp_path: Path) -> None:
        _copy_with(tiny, _configured(model_type="mamba"))(tmp_path / "model")
        self.check(homes, tmp_path / "model", "Models of the family “mamba” cannot be divided yet")

    def check(self, homes: Homes, model: Path, sentence: str) -> None:
        before = sorted(model.rglob("*"))
        home = homes.new()
        ended = home.run("host", "--model", model, "--members", 1, "--listen", "127.0.0.1:0", "--json")
        check_refusal(home, ended, sentence)
        assert sorted(model.rglob("*")) == before

    def test_a_model_without_a_tokenizer(self, home: Home, tiny: Path, tmp_path: Path) -> None:
        """It is missed where it is used: at the head."""
        model = tmp_path / "model"
        _copy_with(tiny, lambda folder: (folder / "tokenizer.json").unlink())(model)
        ended = home.run("host", "--model", model, "--members", 1, "--listen", "127.0.0.1:0", "--json")
        assert ended.code == 1
        assert "The tokenizer of “model” cannot be loaded" in ended.err
        assert "Traceback" not in ended.err
        assert ended.events()[-1]["event"] == "ended"

    def test_a_model_that_has_no_room(self, homes: Homes, tmp_path: Path) -> None:
        model = write_huge_model(tmp_path / "huge")
        home = homes.new()
        ended = home.run("host", "--model", model, "--members", 1, "--listen", "127.0.0.1:0", "--json")
        assert ended.code == 3, ended.said
        me = next(event["name"] for event in ended.events() if event["event"] == "member")
        assert f"{me} is " in ended.err
        assert "short of room" in ended.err
        assert "Traceback" not in ended.err
        assert ended.events()[-1]["event"] == "ended"
        assert not home.models.exists()

    def test_too_many_conversations(self, home: Home, tiny: Path) -> None:
        how = ("--members", 1, "--listen", "127.0.0.1:0", "--concurrency", 1_000_000_000, "--json")
        ended = home.run("host", "--model", tiny, *how)
        assert ended.code == 3, ended.said
        assert "Let fewer people chat at once" in ended.err


def write_huge_model(folder: Path) -> Path:
    """A Llama with more weights than any computer has room for, in a file with nothing but holes."""
    hidden, inner, blocks, vocabulary = 65_536, 1_048_576, 8, 1024
    shapes = {"model.embed_tokens.weight": (vocabulary, hidden), "model.norm.weight": (hidden,)}
    for block in range(blocks):
        name = f"model.layers.{block}"
        shapes |= {f"{name}.self_attn.{part}_proj.weight": (hidden, hidden) for part in "qkvo"}
        shapes |= {f"{name}.mlp.{part}_proj.weight": (inner, hidden) for part in ("gate", "up")}
        shapes |= {f"{name}.mlp.down_proj.weight": (hidden, inner)}
        shapes |= {f"{name}.{norm}_layernorm.weight": (hidden,) for norm in ("input", "post_attention")}
    header: dict[str, object] = {}
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": (start, end)}
    encoded = json.dumps(header).encode()
    folder.mkdir()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        file.truncate(8 + len(encoded) + end)
    config = {
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": blocks,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "vocab_size": vocabulary,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
        "max_position_embeddings": 4096,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


# Networks


def no_network(*, loopback: bool) -> list[str]:
    """A command that runs others where there is no network at all, or nothing but the loopback interface."""
    up = "ip link set lo up; " if loopback else ""
    return ["unshare", "--net", "sh", "-c", f'{up}exec "$@"', "sh"]


@pytest.mark.mlx
@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("unshare"),
    reason="a network of one's own takes Linux, and root",
)
class TestWithoutNetwork:
    @pytest.mark.parametrize("command", ["host", "join"])
    def test_there_is_no_interface(self, home: Home, tiny: Path, command: str) -> None:
        how = ("join", LINK) if command == "join" else ("host", "--model", tiny, "--members", 2)
        ended = home.run(*how, "--json", before=no_network(loopback=False))
        check_refusal(home, ended, "This computer has no network connection")

    def test_one_computer_is_enough_for_a_session(self, homes: Homes, tiny: Path) -> None:
        """A code, and nothing but the loopback interface."""
        how = ("--members", 2, "--admit", "all", "--prompt", "Hello", "--max-tokens", 4, "--json")
        host = homes.new().start("host", "--model", tiny, *how, before=no_network(loopback=True))
        code = host.event("code")["code"]
        inside = ["nsenter", f"--net=/proc/{host.pid}/ns/net"]
        joined = homes.new().run("join", code, before=inside)
        ended = host.finish()
        assert (ended.code, joined.code) == (0, 0), ended.err + joined.err
        assert "answer" in {event["event"] for event in ended.events()}

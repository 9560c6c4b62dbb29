"""The thread that owns MLX, and what starting it does to the process; each in one of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.mlx

APP = Path(__file__).parents[2] / "app"

BEGIN = """
import asyncio, os, sys
from pathlib import Path
from kafila.compute.mlx_thread import MlxThread
from kafila.domain.errors import UserError

thread = MlxThread(Path(sys.argv[1]))
"""


def run_program(program: str, kernels: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BEGIN + program, str(kernels)],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(APP), "PATH": ""},
    )


def test_starting_mlx_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    done = run_program(
        """
import resource
assert "mlx.core" not in sys.modules and "mlx_lm" not in sys.modules
resource.setrlimit(resource.RLIMIT_NOFILE, (700, 3000))

async def main():
    assert await thread.run(lambda: sys.modules["mlx_lm"].__name__) == "mlx_lm"
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (2048, 3000)
    threads = [await thread.run(__import__("threading").get_ident) for _ in range(3)]
    assert len(set(threads)) == 1
    assert os.environ["TMPDIR"] == sys.argv[1]
    assert os.stat(sys.argv[1]).st_mode & 0o777 == 0o700
    import mlx.core as mx
    assert (await thread.run(lambda: mx.ones(3).sum().item())) == 3
    await thread.close()

asyncio.run(main())
print("end")
""",
        tmp_path / "kernels",
    )
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


def test_a_computer_on_which_mlx_does_not_start(tmp_path: Path) -> None:
    done = run_program(
        """
sys.modules["mlx.core"] = None

async def main():
    for _ in range(2):
        try:
            await thread.run(int)
        except UserError as error:
            print(error.problem.title)
    await thread.close()

asyncio.run(main())
""",
        tmp_path,
    )
    assert (done.returncode, done.stdout) == (0, "This computer cannot run models\n" * 2), done.stderr


def test_a_thread_that_was_never_used_ends_too(tmp_path: Path) -> None:
    done = run_program("asyncio.run(thread.close())\nassert 'mlx' not in sys.modules", tmp_path)
    assert done.returncode == 0, done.stderr

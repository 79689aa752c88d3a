"""The program `dpm`, as a child process."""

from __future__ import annotations

import hashlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from typing import IO, Any, Callable, Iterable, Mapping, NamedTuple, Sequence, Union

from ._errors import BudgetExceeded, DpmError, DpmWarning, InputError, Interrupted
from ._progress import Reporter

VERSION = "0.1.0"

StrPath = Union[str, "os.PathLike[str]"]

_checked: set[str] = set()


def program() -> str:
    """The path of the program: that of the installed wheel, else `DPM` in the environment, else
    the first on PATH.

    Raises
    ------
    DpmError
        If there is none, or one of another version.
    """
    path = _of_the_wheel() or os.environ.get("DPM") or shutil.which("dpm")
    if not path:
        raise DpmError(
            "the program `dpm` is not there: install this package with pip, which builds it, or "
            "put its path in the environment variable DPM"
        )
    if path not in _checked:
        try:
            said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
        except OSError as error:
            raise DpmError(f"cannot run `{path}`: {error.strerror}; check DPM and PATH") from None
        if said.split() != ["dpm", VERSION]:
            raise DpmError(
                f"`{path}` is {said.strip() or 'no dpm'}, and this package is for dpm {VERSION}: "
                "install both from the same source"
            )
        _checked.add(path)
    return path


def _of_the_wheel() -> str | None:
    from importlib import metadata

    try:
        files = metadata.files("dpm-bayes") or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name in ("dpm", "dpm.exe"):
            path = str(file.locate())
            if os.access(path, os.X_OK):
                return path
    return None


_workspace: tempfile.TemporaryDirectory[str] | None = None
_lock = threading.Lock()


def keep(name: str, text: str) -> Path:
    """A file of public text that lasts as long as Python does, so that a run that reads it can
    be resumed."""
    global _workspace
    with _lock:
        if _workspace is None:
            _workspace = tempfile.TemporaryDirectory(prefix="dpm-")
        folder = Path(_workspace.name) / hashlib.sha256(text.encode()).hexdigest()[:16]
        folder.mkdir(exist_ok=True)
        path = folder / name
        if not path.exists():
            path.write_text(text, encoding="utf-8")
    return path


def _plain(value: Any) -> Any:
    """Arrays and their scalars as JSON has them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError


def _json(name: str, value: object) -> Path:
    try:
        text = json.dumps(value, default=_plain, allow_nan=False)
    except (TypeError, ValueError):
        wrong = True
    else:
        wrong = False
    if wrong:
        raise InputError(f"{name}: expected finite numbers, text, and lists and dicts of these")
    return keep(f"{name}.json", text)


def _header(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"') else name


def _texts(name: str, value: object) -> Iterable[str]:
    """The values of a flag, one for each time that it is given."""
    if name == "columns" and isinstance(value, Mapping):
        for variable, headers in value.items():
            listed = [headers] if isinstance(headers, str) else headers
            yield f"{variable}={','.join(map(_header, listed))}"
    elif isinstance(value, Mapping):
        yield str(_json(name, value))
    elif isinstance(value, (list, tuple)):
        if any(isinstance(item, Mapping) for item in value):
            yield str(_json(name, value))
        elif all(isinstance(item, (str, os.PathLike)) for item in value):
            yield from map(os.fspath, value)
        else:
            yield ",".join(map(str, value))
    elif isinstance(value, os.PathLike):
        yield os.fspath(value)
    else:
        yield str(value)


def arguments(flags: Mapping[str, object]) -> list[str]:
    """Keyword arguments as the program's flags: `num_samples=500` is `--num-samples=500`, True a
    flag without a value; what is None or False is left out. A dict becomes a JSON file."""
    given = []
    for name, value in flags.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            given.append(flag)
        elif value is not None and value is not False:
            given.extend(f"{flag}={text}" for text in _texts(name, value))
    return given


class Pipe:
    """A child's standard input, which remembers whether the child has closed it."""

    closed = False
    broken = False
    interrupted = False

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw

    def write(self, data: bytes) -> int:
        try:
            return self._raw.write(data)
        except OSError:
            self.broken = True
            raise
        except KeyboardInterrupt:
            # A library that writes may make another exception of it.
            self.interrupted = True
            raise

    def flush(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Only `run` closes the pipe: its end says that the table is whole."""


class Source(NamedTuple):
    """Data for the program: paths, or what writes a table to its standard input."""

    paths: Sequence[str]
    write: Callable[[Pipe], None] | None = None


class Done(NamedTuple):
    code: int
    out: str
    err: str
    interrupted: bool


def run(argv: Sequence[str], source: Source | None = None, reporter: Reporter | None = None) -> Done:
    """Runs the program to its end; `reporter` hears what it says.

    Ctrl-C reaches the program once for each time that it is pressed: the first makes it write
    what it has, a second one ends it. An exception of the reporter's is raised when the program
    has ended, after it was stopped in the same way.
    """
    write = source.write if source else None
    child = subprocess.Popen(
        [program(), *argv],
        stdin=subprocess.DEVNULL if write is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Signals to the terminal's or the kernel's group would reach it twice otherwise.
        start_new_session=True,
    )
    assert child.stdout and child.stderr
    out: list[bytes] = []
    err: list[str] = []
    said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    readers = [
        threading.Thread(target=lambda pipe: out.append(pipe.read()), args=(child.stdout,)),
        threading.Thread(target=_listen, args=(child.stderr, said)),
    ]
    ended = failed = False
    interrupts = 0
    trouble: Exception | None = None
    try:
        for reader in readers:
            reader.start()
        if write is not None:
            _feed(child, write)
        # The reporter is called in the thread that waits, where notebooks expect what is shown.
        while True:
            try:
                # Not all systems let Ctrl-C end a wait.
                if ended:
                    child.wait(timeout=1)
                    break
                line = said.get(timeout=1)
                if line is None:
                    ended = True
                elif trouble or not (reporter and reporter.hear(line)):
                    err.append(line)
                    failed = failed or _is_error(line)
                    if reporter and reporter.talks and not (failed or trouble):
                        reporter.say(line)
            except (queue.Empty, subprocess.TimeoutExpired):
                pass
            except (KeyboardInterrupt, Exception) as stop:
                if isinstance(stop, Exception):
                    trouble = stop
                interrupts += 1
                if interrupts > 2 or sys.platform == "win32":
                    child.kill()
                else:
                    child.send_signal(signal.SIGINT)
    finally:
        if reporter:
            reporter.close()
        if child.poll() is None:
            child.kill()
            child.wait()
        for reader in readers:
            if reader.ident is not None:
                reader.join()
        child.stdout.close()
        child.stderr.close()
    if trouble:
        raise trouble
    text = b"".join(out).decode("utf-8", "replace")
    return Done(child.returncode, text, "\n".join(err), interrupts > 0)


def _listen(pipe: IO[bytes], said: queue.SimpleQueue[str | None]) -> None:
    for raw in pipe:
        said.put(raw.decode("utf-8", "replace").rstrip("\r\n"))
    said.put(None)


def _feed(child: subprocess.Popen[bytes], write: Callable[[Pipe], None]) -> None:
    assert child.stdin
    pipe = Pipe(child.stdin)
    refusal: str | None = None
    try:
        write(pipe)
        child.stdin.flush()
    except InputError as error:
        refusal = str(error)
    except Exception as error:
        refusal = (
            f"the table cannot be read: {type(error).__name__}, whose message might hold values and "
            "is not shown. Make sure that it is still open, and that its columns hold numbers, truth "
            "values or text"
        )
    except BaseException:
        _end(child)
        raise
    # Where the program has closed the pipe, it says why.
    if refusal is not None and not pipe.broken:
        _end(child)
    try:
        child.stdin.close()
    except OSError:
        pipe.broken = True
    if pipe.interrupted:
        raise KeyboardInterrupt
    if refusal is not None and not pipe.broken:
        # Not where it was caught: the message of a cause might hold a value.
        raise InputError(refusal)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Before its input ends, so that a part of a table is never taken for all of it."""
    child.kill()
    child.wait()


def _is_error(line: str) -> bool:
    return line.startswith(("error: ", "error["))


def message(err: str) -> str:
    """What is wrong, of all that the program has said."""
    lines = err.splitlines()
    start = next((i for i, line in enumerate(lines) if _is_error(line)), None)
    if start is None:
        return lines[-1] if lines else "the program ended without a word"
    text = "\n".join(lines[start:]).strip()
    return text[len("error: ") :] if text.startswith("error: ") else text


def failure(done: Done, directory: Path | None = None, ledger: StrPath | None = None) -> BaseException:
    """The exception for a command that failed."""
    text = _in_keywords(message(done.err))
    if directory and not any((directory / name).exists() for name in ("unfinished", "privacy.json")):
        directory = None  # nothing was released, or nothing is written
    if done.interrupted or done.code == 130:
        if done.code == 0:
            text = "interrupted, when the program had just ended"
        if directory and str(directory) not in text:
            text = f"{text} ({directory})"
        return Interrupted(text, directory)
    if done.code == 2:
        return InputError(text)
    if done.code == 3:
        return BudgetExceeded(text, {**_said(text), **_balance(ledger)})
    if done.code < 0:
        text = f"the program was ended by signal {-done.code}"
    if directory and (directory / "unfinished").is_dir():
        text = f"{text}\nthe run so far is in {directory}: dpm.resume goes on with it, at no further charge"
        return DpmError(text, directory)
    return DpmError(text)


def _in_keywords(text: str) -> str:
    """A message in the words of this package: `--on-bad-rows skip` is `on_bad_rows="skip"`.
    Commands stay as they are."""

    def assignment(given: str, several: bool) -> str:
        flag, _, value = given.partition(" ")
        name = flag.replace("-", "_")
        if name == "columns" and "=" in value:
            variable, _, header = value.partition("=")
            value = f'{{"{variable}": "{header}"}}'
        elif not value:
            return f"{name}=True" if several else name
        elif not value.isupper() and not re.fullmatch(r"[\d.e+-]+", value):
            value = f'"{value}"'
        return f"{name}={value}"

    def keywords(found: re.Match[str]) -> str:
        if found["flag"]:
            return found["flag"].replace("-", "_")
        if not found[0].startswith("`--"):
            return found[0]
        given = found[0][3:-1].split(" --")
        return f"`{', '.join(assignment(each, len(given) > 1) for each in given)}`"

    text = re.split(r"\n\n(?:Usage: |For more information)", text)[0].replace("standard input", "the table")
    return re.sub(r"`[^`]*`|(?<![\w./-])--(?P<flag>[a-z]+(?:-[a-z]+)*)(?: <[^>]*>)?", keywords, text)


def _said(text: str) -> Mapping[str, float]:
    """The figures of a refusal, as the program says them: of a ledger, or of a run by itself."""
    patterns = {
        "requested": r"(?:requested|needs epsilon) (inf|-?[\d.]+(?:e[+-]?\d+)?)",
        "spent": r"(?:spent|Spent so far:) (-?[\d.]+(?:e[+-]?\d+)?)",
        "remaining": r"remaining:? (-?[\d.]+(?:e[+-]?\d+)?)",
    }
    found = {name: re.search(pattern, text) for name, pattern in patterns.items()}
    return {name: float(match[1].rstrip(".")) for name, match in found.items() if match}


def _balance(ledger: StrPath | None) -> Mapping[str, Any]:
    if ledger is None:
        return {}
    done = run(["ledger", "show", "--format=json", "--", os.fspath(ledger)])
    return dict(json.loads(done.out)) if done.code == 0 else {}


def call(
    command: str,
    *positional: StrPath,
    source: Source | None = None,
    **flags: object,
) -> str:
    """What a command prints. Warnings that its numbers are not private become Python's.

    Raises
    ------
    InputError, BudgetExceeded, DpmError
        As the exit code says.
    """
    places = [*(os.fspath(place) for place in positional), *(source.paths if source else ())]
    done = run([*command.split(), "--quiet", "--color=never", *arguments(flags), "--", *places], source)
    if done.code or done.interrupted:
        raise failure(done)
    warn(done.err)
    return done.out


def answer(command: str, *positional: StrPath, source: Source | None = None, **flags: object) -> Any:
    """The JSON that a command prints."""
    return json.loads(call(command, *positional, source=source, **flags))


def warn(err: str) -> None:
    for line in err.splitlines():
        warnings.warn(line, DpmWarning, stacklevel=4)

"""The `auxeval` command: one file per subcommand, loaded only when it is called."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from pipeline.giving_way import refuse_to_replace

__all__ = ["main"]

_COMMANDS = {
    "run": ("run", "Collect, assemble, estimate, report."),
    "init": ("init", "A commented configuration for the keys at hand."),
    "judge": ("judge", "Judge responses that exist already."),
    "resume": ("resume", "Carry on where a run stopped; asks nothing twice."),
    "replay": ("replay", "The same run from recorded responses alone, without network."),
    "plan": ("plan", "What a run would do and cost; how many labels a half-width needs."),
    "estimate": ("estimate", "Estimators on your own table, of any shape."),
    "report": ("report", "(Re)build the report of a run."),
    "compare": ("compare", "Paired comparison of two runs on shared items."),
    "gate": ("gate", "Ship, block or inconclusive: a candidate against its base."),
    "runs": ("runs", "What runs there are."),
    "study": ("study", "Reproduce a table or figure of the papers."),
    "look": ("look", "What a file holds, and the command to run on it."),
    "import": ("imports", "Other tools' results into our tables."),
    "audit": ("audit", "Answers that could not be read, out to a person and back."),
    "label": ("label", "Label in a local page, until the plan says that it is enough."),
    "labels": ("labels", "The items that need gold labels, out to a CSV and back."),
    "export": ("export", "The responses of a run as one portable file."),
    "cache": ("cache", "Care of the response cache."),
    "config": ("config", "Check a configuration file."),
    "serve-local": ("serve_local", "A small model on this machine, without keys."),
    "doctor": ("doctor", "Check keys, models, prices, cache and disk."),
    "skill": ("skill", "Which command answers which question, with the traps."),
    "schema": ("schema", "The shape of what --json prints, as JSON Schema."),
}


_LIGHT = ("runs", "skill", "schema", "cache", "config", "init")
"""Commands that load neither polars nor numpy."""
_LOGGED = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
"""How a log begins: further lines are added to one, and to no other file."""
_RESERVED_MIB, _RESERVED_A_CORE_MIB = 1200, 64
"""Address space that polars, OpenBLAS and their threads reserve, seen on 2 cores: 1,000 MiB abort, 1,500 do."""


class _LazyGroup(click.Group):
    """Lists every subcommand with its one line, and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"pipeline.cli.{_COMMANDS[cmd_name][0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], _COMMANDS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "; see auxeval --help"
            raise click.UsageError(f"no such command {args[0]!r}{hint}")
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"auxeval {version('auxeval')}")
        ctx.exit()


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", count=True, help="Log more to stderr; twice for debug.")
@click.option("--log-file", type=click.Path(dir_okay=False, path_type=Path), help="Write the log to a file as well.")
@click.option(
    "--version", is_flag=True, callback=_print_version, expose_value=False, is_eager=True, help="Show the version."
)
def _auxeval(verbose: int, log_file: Path | None) -> None:
    """Evaluate language models with fewer gold labels and honest error bars."""
    _set_up_logging(verbose, log_file)


def _set_up_logging(verbose: int, log_file: Path | None) -> None:
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if log_file is not None:
        refuse_to_replace(log_file, lambda text: _LOGGED.match(text) is not None, "log")
        handlers.append(logging.FileHandler(log_file, encoding="utf-8"))
    for handler in handlers:
        handler.addFilter(_without_secrets)
    logging.basicConfig(level=level, handlers=handlers, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("LiteLLM", "litellm", "httpx", "httpcore", "openai", "aiohttp", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _without_secrets(record: logging.LogRecord) -> bool:
    """Take the values of key variables (``.env`` included, once it is loaded) out of whatever is logged."""
    from pipeline.models.redaction import SecretFilter, environment_secrets

    return SecretFilter(environment_secrets()).filter(record)


def _fail(message: str, code: int) -> int:
    """One line on stderr, free of control characters."""
    line = " ".join(message.split())
    with contextlib.suppress(OSError):  # the working directory can be gone
        line = line.replace(f"{Path.cwd()}{os.sep}", "")  # a file as its user named it, not as it was resolved
    click.echo("auxeval: " + "".join(c if c.isprintable() else "?" for c in line), err=True)
    return code


def main(argv: list[str] | None = None) -> None:
    """Entry point: runs one command and exits with 0, 1 (internal error), 2 (bad input) or 3 (stopped, resumable)."""
    _ready_streams()
    code = _run(argv)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        code = _fail(f"the output could not be written: {error.strerror}", 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _ready_streams() -> None:
    """Streams that take every text: a closed one becomes the null device, ASCII escapes what it cannot say."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _refuse_little_memory(argv: list[str]) -> None:
    """Say so where the shell allows less than the numerical libraries reserve: they abort without a word of ours.

    Raises:
        InputError: the limit of address space (``ulimit -v``) is too low for a command that computes.
    """
    if not argv or argv[0].startswith("-") or argv[0] in _LIGHT or not {"-h", "--help"}.isdisjoint(argv):
        return
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    needed = _RESERVED_MIB + _RESERVED_A_CORE_MIB * (os.cpu_count() or 1)
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < needed << 20:
        from pipeline.errors import InputError

        raise InputError(
            f"out of memory: this shell allows {limit >> 20:,} MiB of address space, and the numerical libraries"
            f" reserve {needed:,}; raise it (ulimit -v {needed << 10})"
        )


def _run(argv: list[str] | None) -> int:
    from pipeline.errors import AuxevalError, StoppedEarly

    try:
        _refuse_little_memory(sys.argv[1:] if argv is None else argv)
        result: Any = _auxeval.main(args=argv, prog_name="auxeval", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.UsageError as error:
        if error.ctx is not None and isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            click.echo(error.ctx.get_help(), err=True)
            return 2
        where = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        return _fail(error.format_message() + where, 2)
    except click.ClickException as error:
        return _fail(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt) as error:
        cause = error if isinstance(error, KeyboardInterrupt) else error.__cause__
        return _fail(str(cause or "") or "interrupted", 130)
    except StoppedEarly as error:
        _fail(str(error), 3)
        if error.resume_command:
            click.echo(error.resume_command, err=True)
        return error.exit_code
    except AuxevalError as error:
        return _fail(str(error), error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone: nothing to say, and nothing to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _fail("out of memory; close what else runs or raise the limit (ulimit -v), then resume the run", 2)
    except BaseException as error:
        panic = type(error).__name__ == "PanicException"  # of polars; it is no Exception
        if not isinstance(error, Exception) and not panic:
            raise
        if (isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)) or (
            panic and "TooManyOpenFiles" in str(error)
        ):
            return _fail("too many open files for the limit of this shell; raise it (ulimit -n 1024)", 2)
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            return _fail(f"the disk is full{f' ({error.filename})' if error.filename else ''}; free space", 2)
        if isinstance(error, OSError) and error.filename is not None:  # a path of the user's that cannot be used
            return _fail(f"{error.filename}: {error.strerror}", 2)
        logging.getLogger(__name__).debug("internal error", exc_info=True)
        return _fail(
            f"internal error: {type(error).__name__}: {error} (run with -vv for the traceback, and please report it)", 1
        )

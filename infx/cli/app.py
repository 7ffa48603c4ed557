"""The command line's root: one table of commands, each imported only when it is used."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from typing import Any

import typer
from typer.core import TyperGroup

from infx.errors import InfxError
from infx.findings import did_you_mean

COMMANDS: dict[str, tuple[str, str]] = {
    "validate": ("infx.cli.validate", "Check recipes, runner profiles and configs; print every finding at once."),
    "plan": ("infx.cli.plan", "Show the points, servers and engine starts that recipes expand to."),
    "explain": ("infx.cli.explain", "Say what each point will do before it runs, or what a change changes."),
    "schema": ("infx.cli.schema", "Print JSON Schemas of recipes, profiles, configs, changelog and run files."),
    "draft-table": ("infx.cli.draft_table", "Say in which precision the drafter of a checkpoint is stored and served."),
    "sweep": ("infx.cli.sweep", "Start pinned engines, measure every point of the ladder, store the results."),
    "runs": ("infx.cli.runs", "List runs and their jobs; attach to one, or cancel it."),
    "runner": ("infx.cli.runner", "List runner profiles; check that one can measure here; clear up after dead sweeps."),
    "show": ("infx.cli.show", "Print the table of a run."),
    "plot": ("infx.cli.plot", "Draw throughput against interactivity and latency."),
    "report": ("infx.cli.report", "Put runs into one page that opens from disk."),
    "trace": ("infx.cli.trace", "Look at trace files: lengths, turns, reuse and cache hits in theory."),
    "import": ("infx.cli.importer", "Read results of other tools, with a reason for what they lack."),
    "export": ("infx.cli.export", "Write a run in other tools' formats."),
    "compare": ("infx.cli.compare", "Say what differs between runs, with a verdict on every figure."),
    "engine-diff": ("infx.cli.engine_diff", "Say in which settings two engine starts differ, and who asked."),
    "ab": ("infx.cli.ab", "Measure two arms in alternating engine starts and compare them."),
    "noise": ("infx.cli.noise", "Keep the noise floor of repeated runs, for single runs to be judged by."),
    "selfbench": ("infx.cli.selfbench", "Find the rate at which this machine's load client would be the limit."),
    "changelog": ("infx.cli.changelog", "Append results to the changelog and check it."),
    "ci": ("infx.cli.ci", "Plan, reuse, propose and sign off the sweeps of pull requests."),
}
"""Command → (module, help line). A module has ``command`` (a function) or ``app`` (a Typer with subcommands)."""


class LazyGroup(TyperGroup):
    """Commands by name from the table; nothing is imported to print the list."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        if hasattr(module, "app"):
            command = typer.main.get_command(module.app)
        else:
            single = typer.Typer(add_completion=False, rich_markup_mode=None)
            single.command(cmd_name)(module.command)
            command = typer.main.get_command(single)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in COMMANDS:
            ctx.fail(f"there is no command {name!r}. Commands: {', '.join(COMMANDS)}. {did_you_mean(name, COMMANDS)}")
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, add_completion=True, rich_markup_mode=None,
                  pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
                  help="A benchmark-recipe harness for LLM inference engines.")


def _version(wanted: bool) -> None:
    if wanted:
        from infx.schema.version import __version__

        typer.echo(f"infx {__version__}")
        raise typer.Exit


@app.callback()
def root(
    debug: bool = typer.Option(False, "--debug", help="Show tracebacks of infx's own errors."),
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Options that stand before the command."""
    if debug:
        os.environ["INFX_DEBUG"] = "1"


def main() -> None:
    """Entry point: every expected failure becomes a message and its exit code; a bug says how to report it."""
    try:
        app()
    except InfxError as error:
        _fail(f"infx: {_kind(error)}: {error}", error.exit_code)
    except KeyboardInterrupt:
        _fail("infx: interrupted", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        _fail(f"infx: {error.filename or 'system'}: {error.strerror or error}\n  do: see that the place exists, is "
              "writable and has room", 9)
    except Exception as error:
        _fail(f"infx: a bug: {type(error).__name__}: {error}\n  do: report it with what --debug prints", 70)


def _kind(error: InfxError) -> str:
    """``RunnerError`` → ``runner``: the word before the message."""
    return type(error).__name__.removesuffix("Error").lower()


def _fail(text: str, code: int) -> None:
    if os.environ.get("INFX_DEBUG"):
        traceback.print_exc()
    print(text, file=sys.stderr)
    sys.exit(code)

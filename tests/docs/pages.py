"""One page from its first example to its last: what is wrong, and the page as it should be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.page_examples import Block, agrees, blocks_of, difference, refreshed
from tests.docs.page_runner import EmbeddedRun, PageRunner


@dataclass(frozen=True, slots=True)
class PageResult:
    """What running a page showed.

    Attributes:
        failed: examples that do not work, a line each.
        stale: examples that print something else than the page says, a diff each.
        fresh: the page with what they print.
    """

    failed: tuple[str, ...]
    stale: tuple[str, ...]
    fresh: str

    @property
    def wrong(self) -> tuple[str, ...]:
        """Everything that is."""
        return self.failed + self.stale


def run_page(text: str, folder: Path, embedded: EmbeddedRun) -> PageResult:
    """Run every block of a page in order, in an empty folder.

    ``console`` and ``python`` blocks are run, ``yaml`` blocks must be valid parts of a run configuration; a ``text``
    block right after a Python block is what that prints. Others are prose.
    """
    failed: list[str] = []
    stale: list[str] = []
    replaced: list[tuple[int, int, list[str]]] = []
    with PageRunner(folder, embedded) as runner:
        blocks = blocks_of(text)
        for block, following in zip(blocks, [*blocks[1:], None], strict=False):
            if block.not_run is not None:
                continue
            try:
                for documented, line, printed in _outputs(runner, block, following):
                    if not agrees(documented, printed):
                        stale.append(f"line {line}:\n{difference(documented, printed)}")
                    replaced.append((line, line + len(documented), refreshed(documented, printed)))
            except Exception as error:
                failed.append(f"block at line {block.line}: {type(error).__name__}: {error}")
    lines = text.split("\n")
    for start, end, output in reversed(replaced):
        lines[start:end] = output
    return PageResult(tuple(failed), tuple(stale), "\n".join(lines))


def _outputs(
    runner: PageRunner, block: Block, following: Block | None
) -> Iterator[tuple[tuple[str, ...], int, list[str]]]:
    """(documented lines, number of the first, printed lines) of each example of a block."""
    if block.language == "console":
        for command in block.commands:
            yield command.output, command.line, runner.command(command)
        runner.finish()
    elif block.language == "python":
        printed = runner.python(block)
        if (
            following is not None
            and following.language == "text"
            and following.line == block.line + len(block.lines) + 3
        ):
            yield following.lines, following.line, printed
    elif block.language == "yaml":
        runner.configuration(block)

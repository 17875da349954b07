"""Prompt files: found, checked, and rendered so that no outside text can pass for a part of the prompt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from pipeline.errors import ConfigError

if TYPE_CHECKING:
    from jinja2 import Template

ReplyKind = Literal["answer", "chain", "preference", "score", "probability", "letter", "same"]

_STAGE_FILES: Mapping[str, tuple[str, ...]] = {
    "answer": ("answer",),
    "anchor": ("anchor",),
    "auxiliary": ("auxiliary",),
    "preference": ("preference",),
    "tau": ("tau",),
    "pointwise": ("pointwise_1", "pointwise_2", "pointwise_3"),
    "pairwise": ("pairwise",),
    "candidates": ("answer",),
    "candidate_scores": ("candidate_scores",),
    "criterion": ("criterion",),
    "direct": ("direct",),
    "p_true": ("p_true",),
}
_TAU_FILES = {
    ("zero_shot", "default"): "tau",
    ("zero_shot", "correctness"): "tau_correctness",
    ("in_context", "default"): "tau_in_context",
    ("in_context", "correctness"): "tau_in_context",
}
_VARIABLES: Mapping[str, frozenset[str]] = {
    "answer": frozenset({"question", "choices"}),
    "anchor": frozenset({"question", "choices"}),
    "auxiliary": frozenset({"question", "choices"}),
    "candidates": frozenset({"question", "choices"}),
    "preference": frozenset({"question", "choices", "chain_a", "chain_b"}),
    "pairwise": frozenset({"question", "choices", "response_a", "response_b"}),
    "pointwise": frozenset({"question", "choices", "response"}),
    "candidate_scores": frozenset({"question", "choices", "response"}),
    "criterion": frozenset({"question", "choices", "context", "reference", "response", "criterion", "worst", "best"}),
    "direct": frozenset(
        {"question", "choices", "context_a", "context_b", "reference", "response_a", "response_b", "criterion"}
    ),
    "p_true": frozenset({"question", "choices", "response"}),
    "tau": frozenset({"question", "choices", "chain_a", "chain_b", "preference", "examples", "rubric"}),
    "repair": frozenset({"previous_reply", "problem", "format"}),
}
_REPLIES: Mapping[str, ReplyKind] = {
    "answer": "answer",
    "candidates": "answer",
    "anchor": "chain",
    "auxiliary": "chain",
    "preference": "preference",
    "pairwise": "preference",
    "pointwise": "score",
    "candidate_scores": "score",
    "criterion": "score",
    "direct": "preference",
    "tau": "probability",
    "p_true": "letter",
    "repair": "same",
}
_JSON_KEY = {"preference": "verdict", "score": "score", "probability": "probability"}
_FENCED = {
    "question": "QUESTION",
    "choices": "CHOICES",
    "context": "CONTEXT",
    "context_a": "CONTEXT A",
    "context_b": "CONTEXT B",
    "reference": "REFERENCE",
    "response": "RESPONSE",
    "response_a": "RESPONSE A",
    "response_b": "RESPONSE B",
    "chain_a": "CHAIN A",
    "chain_b": "CHAIN B",
    "previous_reply": "PREVIOUS REPLY",
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file.

    Attributes:
        name: file name without its ending; what tables and manifests call it.
        stage: the stage it asks.
        reply: the form of reply it asks for.
        version: as in its head; for readers, the digest is what identifies it.
        body: the Jinja2 template.
        digest: SHA-256 of the file's bytes.
        source: those bytes, so that a run can keep the prompts it used.
    """

    name: str
    stage: str
    reply: ReplyKind
    version: int
    body: str = field(repr=False)
    digest: str
    source: bytes = field(repr=False, default=b"")


@dataclass(frozen=True, slots=True)
class PromptSet:
    """Every prompt of a run: by stage, in order (``pointwise`` has several), and the repair text."""

    stages: Mapping[str, tuple[Prompt, ...]]
    repair: Prompt

    def __getitem__(self, stage: str) -> tuple[Prompt, ...]:
        return self.stages[stage]

    def digests(self) -> dict[str, str]:
        """SHA-256 of each prompt file, by ``stage/name``: for the manifest."""
        named = {
            f"{stage}/{prompt.name}": prompt.digest for stage, prompts in self.stages.items() for prompt in prompts
        }
        return dict(sorted({**named, "repair/repair": self.repair.digest}.items()))


def default_prompt_folder() -> Path:
    """The folder of our own prompts: inside an installed package, else the checkout's ``prompts/``."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "prompts"
    return installed if installed.is_dir() else package.parent / "prompts"


def load_prompts(
    replacements: Mapping[str, Sequence[Path]] | None = None,
    *,
    tau_variant: str = "zero_shot",
    tau_rubric: str = "default",
    folder: Path | None = None,
) -> PromptSet:
    """Our prompts, with the user's files in place of ours where given.

    Args:
        replacements: stage → files (``config.prompts``); the k-th file replaces our k-th prompt of that stage.
        tau_variant: ``zero_shot`` or ``in_context``.
        tau_rubric: ``default`` or ``correctness``.
        folder: where ours are; by default :func:`default_prompt_folder`.

    Raises:
        ConfigError: a file is missing, is not a template, uses a variable its stage does not have, or does not ask
            for the reply its stage needs.
    """
    today = default_prompt_folder()
    home = folder or today
    given = dict(replacements or {})
    stages: dict[str, tuple[Prompt, ...]] = {}
    for stage, names in _STAGE_FILES.items():
        if stage == "tau":
            names = (_TAU_FILES[tau_variant, tau_rubric],)
        files = tuple(given.get(stage, given.get("answer", ()) if stage == "candidates" else ()))
        if len(files) > len(names):
            raise ConfigError(f"prompts.{stage}: takes {len(names)} file(s) at most, got {len(files)}")
        # A run keeps the prompts it was started with; stages that came later are asked by those of today.
        ours = tuple(path if (path := home / f"{name}.md").exists() else today / f"{name}.md" for name in names)
        stages[stage] = tuple(_read(path, stage) for path in (*files, *ours[len(files) :]))
    return PromptSet(stages=stages, repair=_read(home / "repair.md", "repair"))


def _read(path: Path, stage: str) -> Prompt:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"prompts.{stage}: {path} cannot be read: {error.strerror or error}") from None
    try:
        text = raw.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"prompts.{stage}: {path} is not UTF-8 text (byte {error.start})") from None
    head, body = _split_head(text, path)
    reply = head.get("reply", _REPLIES[stage])
    if reply != _REPLIES[stage]:
        raise ConfigError(f"prompts.{stage}: {path} asks for {reply!r}, the stage needs {_REPLIES[stage]!r}")
    version = head.get("version", 1)
    prompt = Prompt(
        name=path.name.split(".", 1)[0],
        stage=stage,
        reply=_REPLIES[stage],
        version=version if isinstance(version, int) else 1,
        body=body,
        digest=hashlib.sha256(raw).hexdigest(),
        source=raw,
    )
    _check(prompt, path)
    return prompt


def _split_head(text: str, path: Path) -> tuple[dict[str, Any], str]:
    if not text.startswith("---\n"):
        return {}, text
    head, fence, body = text[4:].partition("\n---\n")
    if not fence:
        raise ConfigError(f"{path}: the head that starts with '---' is not closed by a line '---'")
    try:
        values = yaml.safe_load(head)
    except yaml.YAMLError:
        raise ConfigError(f"{path}: the head is not valid YAML") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: the head must be a mapping of role, version, variables, reply")
    return values, body


def _check(prompt: Prompt, path: Path) -> None:
    from jinja2 import TemplateSyntaxError

    try:
        _template(prompt)
        used = _used_variables(prompt.body)
    except TemplateSyntaxError as error:
        raise ConfigError(f"{path}: line {error.lineno} of the body: {error.message}") from None
    allowed = _VARIABLES[prompt.stage]
    unknown = sorted(used - allowed - {"range"})
    if unknown:
        raise ConfigError(f"{path}: unknown variable {unknown[0]!r}; {prompt.stage} has {', '.join(sorted(allowed))}")
    key = _JSON_KEY.get(prompt.reply)
    if key is not None and key not in prompt.body:
        raise ConfigError(f"{path}: must ask for a JSON object with the key {key!r}")
    if not prompt.body.strip():
        raise ConfigError(f"{path}: is empty")


@cache
def _used_variables(body: str) -> frozenset[str]:
    from jinja2 import meta

    return frozenset(meta.find_undeclared_variables(_environment().parse(body)))


@cache
def _environment() -> Any:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, cache_size=64)


def _template(prompt: Prompt) -> Template:
    return _compiled(prompt.body)


@cache
def _compiled(body: str) -> Template:
    template: Template = _environment().from_string(body)
    return template


class _Fenced:
    """Outside text on its way into a prompt: printed, it stands between markers that it cannot contain."""

    __slots__ = ("_lines",)

    def __init__(self, name: str, nonce: str, text: str) -> None:
        self._lines = f"<<<{name} {nonce}>>>\n{text}\n<<<END {name} {nonce}>>>"

    def __str__(self) -> str:
        return self._lines

    __repr__ = __str__

    def __bool__(self) -> bool:
        return True


def clean_text(text: str) -> str:
    """Text that any provider takes: NULs and lone surrogates become U+FFFD, all else stays as it is."""
    if text.isascii():
        return text.replace("\x00", "\ufffd")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "\ufffd")


def render(prompt: Prompt, variables: Mapping[str, Any]) -> str:
    """The text of a prompt.

    Texts that people or models wrote are printed between ``<<<NAME nonce>>>`` and ``<<<END NAME nonce>>>``; the nonce
    is the first 12 hex digits of SHA-256 over the prompt's digest and all variables, so that equal variables give
    equal text, and no text can contain its own.

    Args:
        prompt: the prompt.
        variables: values by name; ``choices`` is a sequence of texts, ``examples`` a sequence of mappings like
            ``variables``. None means absent.

    Raises:
        ConfigError: the template fails with these values.
    """
    from jinja2 import TemplateError

    plain = {name: _plain(name, value) for name, value in variables.items()}
    nonce = _nonce(prompt.digest, plain)
    context: dict[str, Any] = {name: _fence(name, value, nonce) for name, value in plain.items()}
    for name in _VARIABLES[prompt.stage]:
        context.setdefault(name, None)
    try:
        text = _template(prompt).render(context)
    except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
        raise ConfigError(f"prompt {prompt.name}: cannot be rendered: {error}") from None
    return text.strip("\n")


def _plain(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if name == "choices":
        return clean_text("\n".join(f"{chr(ord('A') + k)}. {choice}" for k, choice in enumerate(value))) or None
    if name == "examples":
        return [{key: _plain(key, part) for key, part in example.items()} for example in value]
    return clean_text(str(value))


def _fence(name: str, value: Any, nonce: str, prefix: str = "") -> Any:
    if name == "examples" and value is not None:
        return [
            {key: _fence(key, part, nonce, f"EXAMPLE {k} ") for key, part in example.items()}
            for k, example in enumerate(value, start=1)
        ]
    if value is None or name not in _FENCED:
        return value
    return _Fenced(prefix + _FENCED[name], nonce, value)


def _nonce(digest: str, plain: Mapping[str, Any]) -> str:
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    texts = list(_texts(plain))
    for attempt in range(1_000):
        material = f"{digest}\n{canonical}" + (f"\n{attempt}" if attempt else "")
        nonce = hashlib.sha256(material.encode("ascii")).hexdigest()[:12]
        if not any(nonce in text for text in texts):
            return nonce
    raise AssertionError("no free nonce")  # would need a text that holds a thousand given hashes


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)

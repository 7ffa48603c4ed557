"""Response bytes of the HTTP skin: SSE events and JSON bodies in vLLM's shape, built once per request. Pure."""

from __future__ import annotations

import json

from infx.simulator.sequence import output_token

WORDS = tuple(f" {a}{b}" for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "el", "ir"))
DONE = b"data: [DONE]\n\n"


def text_of(key: int, start: int, count: int) -> str:
    """The words of ``count`` tokens from ``start`` of the answer to the prompt with ``key``."""
    if count == 1:
        return WORDS[output_token(key, start) % len(WORDS)]
    return "".join(WORDS[output_token(key, at) % len(WORDS)] for at in range(start, start + count))


class Answer:
    """Builds the bytes of one response; ``made`` counts tokens given out so far, ``cached`` is reported if not None."""

    def __init__(
        self, name: str, model: str, created: int, prompt_tokens: int, key: int,
        *, chat: bool, continuous_usage: bool, ids: bool,
    ) -> None:  # fmt: skip
        self.made = 0
        self._prompt = prompt_tokens
        self.cached: int | None = None
        self._key = key
        self._chat = chat
        self._continuous = continuous_usage
        self._ids = ids
        kind = "chat.completion" if chat else "text_completion"
        self._name = f'"id":"{name}","object":"{kind}{{chunk}}","created":{created},"model":{json.dumps(model)}'
        head = self._name.replace("{chunk}", ".chunk" if chat else "")
        opening = '"delta":{"content":"' if chat else '"text":"'
        self._head = f'data: {{{head},"choices":[{{"index":0,{opening}'
        self._close = '"}' if chat else '"'

    def role(self) -> bytes:
        """The first event of a chat stream: a role and no token."""
        head = self._name.replace("{chunk}", ".chunk")
        choice = '{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}'
        usage = f',"usage":{self._usage()}' if self._continuous else ""
        return f'data: {{{head},"choices":[{choice}]{usage}}}\n\n'.encode()

    def event(self, tokens: int, finish: str | None) -> bytes:
        """One event with ``tokens`` more tokens."""
        start = self.made
        self.made = start + tokens
        text = text_of(self._key, start, tokens)
        reason = f'"{finish}"' if finish else "null"
        ids = self._token_ids(start, tokens) if self._ids else "null"
        extra = f',"stop_reason":null,"prompt_token_ids":null,"token_ids":{ids}' if not self._chat else (
            f',"token_ids":{ids}'
        )
        usage = f',"usage":{self._usage()}' if self._continuous else ""
        return (
            f'{self._head}{text}{self._close},"logprobs":null,"finish_reason":{reason}{extra}}}]{usage}}}\n\n'
        ).encode()

    def usage_event(self) -> bytes:
        """The last event of a stream with ``include_usage``."""
        head = self._name.replace("{chunk}", ".chunk" if self._chat else "")
        return f'data: {{{head},"choices":[],"usage":{self._usage(final=True)}}}\n\n'.encode()

    def whole(self, finish: str) -> bytes:
        """The body of a response that is not streamed."""
        text = json.dumps(text_of(self._key, 0, self.made))
        ids = self._token_ids(0, self.made) if self._ids else "null"
        shown = f'"message":{{"role":"assistant","content":{text}}}' if self._chat else f'"text":{text}'
        head = self._name.replace("{chunk}", "")
        choice = f'{{"index":0,{shown},"logprobs":null,"finish_reason":"{finish}","token_ids":{ids}}}'
        return f'{{{head},"choices":[{choice}],"usage":{self._usage(final=True)}}}'.encode()

    def _token_ids(self, start: int, count: int) -> str:
        return json.dumps([output_token(self._key, at) for at in range(start, start + count)])

    def _usage(self, *, final: bool = False) -> str:
        total = self._prompt + self.made
        details = f',"prompt_tokens_details":{{"cached_tokens":{self.cached}}}'
        tail = details if final and self.cached is not None else ""
        return f'{{"prompt_tokens":{self._prompt},"total_tokens":{total},"completion_tokens":{self.made}{tail}}}'

"""Chat templates as a few families publish them, shortened, with the special tokens they write."""

from pathlib import Path
from typing import Any, NamedTuple

from tests.families import END, vocabulary


class Chat(NamedTuple):
    """A template, the special tokens of its model, and what closes an assistant's turn."""

    template: str
    special: list[str]
    closing: str
    system: bool = True  # whether it has a system role
    bos: str | None = None
    trims: bool = False  # whether it drops blanks around contents


CHATS = {
    "chatml": Chat(  # SmolLM2, Qwen 2
        "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
        "{{ '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' }}{% endif %}"
        "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
        ["<|im_start|>", "<|im_end|>", "<repo_name>"],
        "<|im_end|>",
    ),
    "llama3": Chat(
        "{{- bos_token }}{% set loop_messages = messages %}"
        "{%- set day = strftime_now('%d %b %Y') if strftime_now is defined else '' %}"
        "{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role']"
        " + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' %}"
        "{% if loop.index0 == 0 %}{% set content = 'Today: ' + day + content %}{% endif %}"
        "{{ content }}{% endfor %}",
        ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
        "<|eot_id|>",
        bos="<|begin_of_text|>",
        trims=True,
    ),
    "gemma": Chat(
        "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
        "{{ raise_exception('System role not supported') }}{% endif %}"
        "{% for message in messages %}"
        "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Conversation roles must alternate user/assistant/user') }}{% endif %}"
        "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}"
        "{% set role = message['role'] %}{% endif %}"
        "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}"
        "{% endfor %}",
        ["<bos>", "<start_of_turn>", "<end_of_turn>"],
        "<end_of_turn>",
        system=False,
        bos="<bos>",
        trims=True,
    ),
    "phi3": Chat(
        "{% for message in messages %}"
        "{{'<|' + message['role'] + '|>' + '\\n' + message['content'] + '<|end|>\\n' }}"
        "{% endfor %}{{ eos_token }}",
        ["<|system|>", "<|user|>", "<|assistant|>"],
        "<|end|>",
    ),
    "mistral": Chat(  # marks of turns are plain text; a system message stands in the last user turn
        "{%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content'] %}"
        "{%- set rest = messages[1:] %}{%- else %}{%- set rest = messages %}{%- endif %}"
        "{{- bos_token }}{%- for message in rest %}{%- if message['role'] == 'user' %}"
        "{%- if loop.index0 == rest | length - 2 and system is defined %}"
        "{{- '[INST] ' + system + '\\n\\n' + message['content'] + '[/INST]' }}{%- else %}"
        "{{- '[INST] ' + message['content'] + '[/INST]' }}{%- endif %}{%- else %}"
        "{{- ' ' + message['content'] | trim + eos_token}}{%- endif %}{%- endfor %}",
        ["<s>"],
        END,
        bos="<s>",
        trims=True,
    ),
}


def chat_folder(name: str, folder: Path, template: str | None = None) -> Path:
    """A folder with the vocabulary of `tests.families` and one of these templates, or another."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary(folder, **chat_words(name, template))
    return folder


def chat_words(name: str, template: str | None = None) -> dict[str, Any]:
    """Options of `tests.families.vocabulary` for one of these chats."""
    chat = CHATS[name]
    options: dict[str, Any] = {"chat_template": template or chat.template, "special": chat.special}
    return options | ({} if chat.bos is None else {"bos_token": chat.bos})

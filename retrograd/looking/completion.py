"""completion: scripts that complete the command line, made from its parser, for bash, zsh and fish."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from string import Template

BASH = Template("""_retrograd() {
    local word=$${COMP_WORDS[COMP_CWORD]} before=$${COMP_WORDS[COMP_CWORD-1]}
    case "$${COMP_WORDS[1]} $$before" in
$values
    esac
    case "$${COMP_WORDS[1]}" in
$options
        *) COMPREPLY=($$(compgen -W "$commands" -- "$$word")); return;;
    esac
    if [[ $$word != -* ]]; then
        COMPREPLY=($$(compgen -f -- "$$word"))
    fi
}
complete -o filenames -F _retrograd retrograd
""")
SHELLS = ("bash", "zsh", "fish")


def completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for a shell: ``eval "$(retrograd completion bash)"``, and ``retrograd completion fish | source``."""
    commands = dict(_commands(parser))
    if shell == "fish":
        return "".join(_fish(commands))
    values = [
        f'        "{name} {flag}") COMPREPLY=($(compgen -W "{" ".join(choices)}" -- "$word")); return;;'
        for name, command in commands.items()
        for flag, choices, _ in _options(command)
        if choices
    ]
    options = [
        f'        {name}) COMPREPLY=($(compgen -W "{" ".join(flag for flag, _, _ in _options(command))}" -- "$word"));;'
        for name, command in commands.items()
    ]
    text = BASH.substitute(values="\n".join(values), options="\n".join(options), commands=" ".join(commands))
    return text if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{text}"


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[str], str]]:
    """Each option, its choices, and its help."""
    for action in parser._actions:
        for flag in action.option_strings:
            yield flag, [str(x) for x in action.choices or ()], action.help or ""


def _fish(commands: dict[str, argparse.ArgumentParser]) -> Iterator[str]:
    for name, command in commands.items():
        about = (command.description or "").split("\n")[0].replace("'", "\\'")
        yield f"complete -c retrograd -n __fish_use_subcommand -f -a {name} -d '{about}'\n"
        for flag, choices, said in _options(command):
            kind = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            given = f" -x -a '{' '.join(choices)}'" if choices else ""
            words = said.replace("'", "\\'")
            yield f"complete -c retrograd -n '__fish_seen_subcommand_from {name}' {kind}{given} -d '{words}'\n"

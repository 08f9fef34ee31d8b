"""`skitter completion`: what bash, zsh and fish need to complete commands, flags and their values.

Written from the parser's own list, so a new flag is completed as soon as it is there. Where a flag has no
choices, file names are completed.
"""

from __future__ import annotations

from collections.abc import Iterator

from skitter.console.command_line import Argument, Command, Flag


def completion(shell: str, commands: tuple[Command, ...]) -> str:
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands)


# -- bash

_BASH = """\
# Completion of skitter for bash. Written by `skitter completion bash`.
_skitter() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words='' name='' number
    for ((number = 1; number < COMP_CWORD; number++)); do
        [[ ${COMP_WORDS[number]} != -* ]] && { name=${COMP_WORDS[number]}; break; }
    done
    COMPREPLY=()
    case "$name $before" in
%(values)s
    esac
    case "$name" in
        '') words='%(commands)s' ;;
%(flags)s
    esac
    if [[ -z $name || $word == -* ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
        return
    fi
    case "$name" in
%(arguments)s
    esac
}
complete -o bashdefault -o default -F _skitter skitter
"""


def _bash(commands: tuple[Command, ...]) -> str:
    return _BASH % {
        "values": "\n".join(_bash_values(commands)),
        "commands": " ".join([*(one.name for one in commands), "--help", "--version"]),
        "flags": "\n".join(f"        {one.name}) words='{_flag_names(one)}' ;;" for one in commands),
        "arguments": "\n".join(_bash_arguments(commands)),
    }


def _bash_values(commands: tuple[Command, ...]) -> Iterator[str]:
    for command in commands:
        for flag in command.flags:
            for name in flag.names if flag.metavar else ():
                yield f"        '{command.name} {name}') {_bash_reply(flag.choices)}return ;;"


def _bash_reply(choices: tuple[str, ...]) -> str:
    return f'COMPREPLY=($(compgen -W "{" ".join(choices)}" -- "$word")); ' if choices else ""


def _bash_arguments(commands: tuple[Command, ...]) -> Iterator[str]:
    for command in commands:
        for argument in command.arguments[:1]:
            if argument.choices:
                yield f"        {command.name}) {_bash_reply(argument.choices)};;"


def _flag_names(command: Command) -> str:
    return " ".join(name for flag in command.flags for name in flag.names)


# -- zsh

_ZSH = """\
#compdef skitter
# Completion of skitter for zsh. Written by `skitter completion zsh`.
_skitter() {
    local -a commands
    commands=(
%(commands)s
    )
    if (( CURRENT == 2 )); then
        _describe -t commands command commands
        _arguments '--help[show help]' '--version[show the version]'
        return
    fi
    local name=$words[2]
    shift words
    (( CURRENT-- ))
    case $name in
%(cases)s
    esac
}
if [[ $funcstack[1] == _skitter ]]; then _skitter "$@"; else compdef _skitter skitter; fi
"""


def _zsh(commands: tuple[Command, ...]) -> str:
    return _ZSH % {
        "commands": "\n".join(f"        {_quoted(f'{one.name}:{one.help}')}" for one in commands),
        "cases": "\n".join(_zsh_case(one) for one in commands),
    }


def _zsh_case(command: Command) -> str:
    lines = [f"        {command.name}) _arguments"]
    lines += [
        f"            {_quoted(_zsh_flag(name, flag))}" for flag in command.flags for name in flag.names
    ]
    lines += [f"            {_quoted(_zsh_argument(one))}" for one in _last_repeated(command)]
    return " \\\n".join(lines) + " ;;"


def _zsh_flag(name: str, flag: Flag) -> str:
    text = flag.help.replace("[", "(").replace("]", ")").replace(":", "\\:")
    value = f":{_zsh_text(flag.metavar)}:{_zsh_values(flag.choices)}" if flag.metavar else ""
    # a * lets it be given again
    return f"*{name}[{text}]{value}"


def _zsh_argument(argument: Argument) -> str:
    return f"*:{_zsh_text(argument.name)}:{_zsh_values(argument.choices)}"


def _zsh_values(choices: tuple[str, ...]) -> str:
    return f"({' '.join(choices)})" if choices else "_files"


def _zsh_text(text: str) -> str:
    return text.replace(":", "\\:")


def _last_repeated(command: Command) -> tuple[Argument, ...]:
    """What the words of a command are, for a shell that is told of one kind: those with choices, or the first."""
    return tuple(sorted(command.arguments, key=lambda one: not one.choices))[:1]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# -- fish


def _fish(commands: tuple[Command, ...]) -> str:
    lines = ["# Completion of skitter for fish. Written by `skitter completion fish`."]
    lines += ["complete -c skitter -n __fish_use_subcommand -f"]
    lines += ["complete -c skitter -n __fish_use_subcommand -l help -d 'show help'"]
    lines += ["complete -c skitter -n __fish_use_subcommand -l version -d 'show the version'"]
    for command in commands:
        lines.append(
            f"complete -c skitter -n __fish_use_subcommand -a {command.name} -d {_fish_text(command.help)}"
        )
        lines += _fish_command(command)
    return "\n".join(lines) + "\n"


def _fish_command(command: Command) -> Iterator[str]:
    begin = f"complete -c skitter -n '__fish_seen_subcommand_from {command.name}'"
    for flag in command.flags:
        names = " ".join(f"-l {name[2:]}" if name[:2] == "--" else f"-s {name[1:]}" for name in flag.names)
        yield f"{begin} {names}{_fish_value(flag)} -d {_fish_text(flag.help)}"
    for argument in command.arguments:
        if argument.choices:
            yield f"{begin} -f -a '{' '.join(argument.choices)}'"


def _fish_value(flag: Flag) -> str:
    if flag.choices:
        return f" -x -a '{' '.join(flag.choices)}'"
    return " -r" if flag.metavar else ""


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

"""Run a piece of Lua by the library that Slurm's own job_submit plugin uses; no program of Lua is needed."""

from __future__ import annotations

import ctypes
import subprocess
import sys

from tests.support.trees import ROOT

LIBRARIES = ("liblua5.1.so.0", "liblua5.2.so.0", "liblua5.3.so.0", "liblua5.4.so.0")
# The hook in a Lua without Slurm: a new job, a job that slurmctld has, a change of it, and what a text says.
HOOK_SCENE = f"""
slurm = {{SUCCESS = 0, ERROR = -1, ESLURM_ACCESS_DENIED = 2002}}
function slurm.log_user() end
function slurm.log_error(...) print("ERROR", ...) end
dofile("{ROOT / "plugins" / "slurm" / "slurm_fair_gate.lua"}")
options = {{partitions = {{"gpu"}}, accounts = {{"vision"}}, gate = "begin", near_seconds = 20, plain = "leave"}}
parts = {{gpu = {{flag_default = 1}}, other = {{flag_default = 0}}}}
local unset = 4294967294
function job(fields)
  local made = {{script = "x", account = "vision", partition = "gpu", tres_per_node = "gres:gpu:1",
    priority = unset, comment = "slurm_fair:v1", begin_time = 0}}
  for name, value in pairs(fields) do made[name] = value end
  return made
end
function record(fields)
  local made = job({{job_state = 0, user_id = 7, priority = 1000, time_limit = 60}})
  for name, value in pairs(fields) do made[name] = value end
  return made
end
function change(fields)
  local made = {{begin_time = 0, priority = unset, time_limit = unset, requeue = 65534}}
  for name, value in pairs(fields) do made[name] = value end
  return made
end
function whose(text)
  return (string.gsub(text or "", "uts%d+", "uts"))
end
"""


def lua_library() -> str | None:
    """The name of a Lua that this machine has; None without one."""
    for name in LIBRARIES:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    return None


def run_lua(text: str, timeout_seconds: float) -> str:
    """All that a piece of Lua prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.lua"],
        input=text,
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _main() -> None:
    lua = ctypes.CDLL(lua_library())
    lua.luaL_newstate.restype = ctypes.c_void_p
    lua.lua_tolstring.restype = ctypes.c_char_p
    state = ctypes.c_void_p(lua.luaL_newstate())
    lua.luaL_openlibs(state)
    failed = lua.luaL_loadstring(state, sys.stdin.read().encode())
    if not failed and hasattr(lua, "lua_pcallk"):
        failed = lua.lua_pcallk(state, 0, 0, 0, ctypes.c_void_p(0), ctypes.c_void_p(0))
    elif not failed:
        failed = lua.lua_pcall(state, 0, 0, 0)
    if failed:
        sys.exit(lua.lua_tolstring(state, -1, None).decode())


if __name__ == "__main__":
    _main()

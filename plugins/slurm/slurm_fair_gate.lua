-- The gate at submission: a managed GPU job does not start by itself before the controller has seen it.
--
-- slurm_fair_gate(job_desc, part_list, submit_uid, options) changes the job and returns slurm.SUCCESS, always:
-- an error in here is logged and lets the job pass as it is. It asks nobody, and reads one small local file at most.
-- options: partitions, accounts (lists of names; empty = all), gate ("begin" or "hold"), gate_seconds, plain and
-- interactive (as in the configuration's [scope]), and health: the file in which the controller says that it acts.
-- While it says nothing or something else, no job is gated.
-- wake: a named pipe that wakes the controller when somebody opens it. It is opened for reading and writing, which
-- never waits, and closed again; nothing is written and nothing is made.
--
-- What it leaves alone: jobs without GPUs, heterogeneous jobs, other partitions and accounts, srun and salloc unless
-- interactive = "gate", batch jobs that do not say that they can save where plain = "leave", and every job that its user holds or wants to begin later (the controller gates those when their time comes).
-- A deadline is not shown to job_submit by any Slurm: the gate may open behind it, but the controller opens it in time.
-- From 24.11 on Slurm refuses a job whose limit, counted from such a gate, ends behind its deadline ("Requested time
-- limit is invalid"): fair-sbatch sends it with a shorter gate.

local UNSET = 4294967294 -- NO_VAL: how Slurm says that a number was not given
local PREFIX = "slurm_fair:"
local SILENT_SECONDS = 60 -- beside three intervals: a look may take long
local MOST_BYTES = 4096

local function contains(names, name)
  for _, known in ipairs(names) do
    if known == name then
      return true
    end
  end
  return false
end

local function is_managed(names, name)
  return names == nil or #names == 0 or contains(names, name)
end

local function default_partition(part_list)
  for name, partition in pairs(part_list) do
    if partition.flag_default == 1 then
      return name
    end
  end
  return nil
end

-- A job may name several partitions: it is managed if it could start in a managed one.
local function in_managed_partition(job_desc, part_list, names)
  if names == nil or #names == 0 then
    return true
  end
  local asked = job_desc.partition or default_partition(part_list) or ""
  for name in string.gmatch(asked, "[^,]+") do
    if contains(names, name) then
      return true
    end
  end
  return false
end

-- "gres:gpu:3", "gres/gpu:a100=2", "gpu:1,gres:shard:2"; not "gres:gpu_mem:4".
local function names_gpus(tres)
  for part in string.gmatch(tres or "", "[^,]+") do
    local rest = string.match(part, "^gres[:/](.*)$") or part
    local kind = string.match(rest, "^([^:=]+)")
    local count = string.match(rest, "[:=](%d+)$")
    if kind == "gpu" and count ~= "0" then
      return true
    end
  end
  return false
end

local function asks_for_gpus(job_desc)
  return names_gpus(job_desc.tres_per_node) or names_gpus(job_desc.tres_per_job)
    or names_gpus(job_desc.tres_per_socket) or names_gpus(job_desc.tres_per_task)
end

local function is_batch(job_desc)
  return job_desc.script ~= nil and job_desc.script ~= ""
end

local function is_heterogeneous(job_desc)
  local offset = job_desc.het_job_offset
  return offset ~= nil and offset ~= UNSET
end

-- By its user's wish, or by the gate that its template put on it and named in the stamp.
local function waits_already(job_desc, now)
  return job_desc.priority == 0 or (job_desc.begin_time or 0) > now
end

-- The comment with the gate in our token: the template's own, or a new one that says "gated, speaks no protocol".
local function with_gate(comment, gate)
  local text = comment or ""
  for token in string.gmatch(text, "%S+") do
    if string.sub(token, 1, #PREFIX) == PREFIX then
      local first, last = string.find(text, token, 1, true)
      local bare = string.gsub(token, ",gate=[^,]*", "")
      return string.sub(text, 1, first - 1) .. bare .. ",gate=" .. gate .. string.sub(text, last + 1)
    end
  end
  local separator = text ~= "" and " " or ""
  return text .. separator .. PREFIX .. "v0,gate=" .. gate
end

-- Whether the comment says, in a token of ours, that the job saves when it is asked.
local function can_save(job_desc)
  for token in string.gmatch(job_desc.comment or "", "%S+") do
    if string.find(token, "^" .. PREFIX .. "v[1-9]") then
      return true
    end
  end
  return false
end

local function is_of_a_managed_kind(job_desc, options)
  if not is_batch(job_desc) then
    return options.interactive == "gate"
  end
  return options.plain ~= "leave" or can_save(job_desc)
end

-- What cannot be taken back waits for its account's own share: its user is told so where there is a choice.
local function tell_user(job_desc, options)
  if options.plain == "revoke" or not is_batch(job_desc) or can_save(job_desc) then
    return
  end
  slurm.log_user("slurm_fair: this job cannot save, so it waits for your account's own share of the GPUs; "
    .. "use fair-sbatch to use idle GPUs")
end

local function is_ours(job_desc, part_list, options)
  return is_of_a_managed_kind(job_desc, options) and asks_for_gpus(job_desc) and not is_heterogeneous(job_desc)
    and in_managed_partition(job_desc, part_list, options.partitions)
    and is_managed(options.accounts, job_desc.account or job_desc.default_account)
end

-- Whether somebody will open the gate again: a controller that is gone, paused or blind opens none.
local function controller_acts(health, now)
  if health == nil or health == "" then
    return true -- nobody has told us where to look
  end
  local file = io.open(health, "r")
  local text = file and file:read(MOST_BYTES) or ""
  if file then
    file:close()
  end
  local time = tonumber(string.match(text, '"time": *([%d.]+)'))
  local interval = tonumber(string.match(text, '"interval_seconds": *([%d.]+)'))
  local acts = string.find(text, '"state": *"acting"') ~= nil
  if not acts or time == nil or interval == nil then
    return false
  end
  local age = now - time -- of a time to come: the clock was set back since, and nobody has written anew
  return age > -SILENT_SECONDS and age < 3 * interval + SILENT_SECONDS
end

local function close_gate(job_desc, part_list, options)
  local now = os.time()
  if waits_already(job_desc, now) or not is_ours(job_desc, part_list, options) then
    return
  end
  if not controller_acts(options.health, now) then
    return
  end
  tell_user(job_desc, options)
  if options.gate == "hold" then
    job_desc.priority = 0
    job_desc.comment = with_gate(job_desc.comment, "hold")
  else
    local opens = now + (options.gate_seconds or 1800)
    job_desc.begin_time = opens
    job_desc.comment = with_gate(job_desc.comment, string.format("uts%d", opens))
  end
end

local function wake(job_desc, part_list, options)
  if options.wake == nil or options.wake == "" or not is_ours(job_desc, part_list, options) then
    return
  end
  local bell = io.open(options.wake, "r+")
  if bell then
    bell:close()
  end
end

function slurm_fair_gate(job_desc, part_list, submit_uid, options)
  local fine, message = pcall(close_gate, job_desc, part_list, options or {})
  if not fine then
    slurm.log_error("slurm_fair: a job of uid %d was let through ungated: %s", submit_uid, tostring(message))
  end
  pcall(wake, job_desc, part_list, options or {})
  return slurm.SUCCESS
end

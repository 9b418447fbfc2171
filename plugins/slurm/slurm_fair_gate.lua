-- The gate at submission: a managed GPU job does not start by itself before the controller has seen it.
--
-- slurm_fair_gate(job_desc, part_list, submit_uid, options) changes the job and returns slurm.SUCCESS. It refuses a job
-- in two cases alone: where unplanned = "refuse", one that nobody can plan and that would be managed otherwise; and one
-- that asks for whole nodes without a word of GPUs, and whose comment leaves no room for ours.
-- An error in here is logged and lets the job pass as it is. It asks nobody, and reads one small local file at most.
-- options: partitions, accounts, qos (lists of names; empty = all), gate ("begin" or "hold"), gate_seconds, plain,
-- interactive and unplanned (as in the configuration's [scope]), and health: the file in which the controller says that
-- it acts. While it says nothing or something else, no job is gated.
-- wake: a named pipe that wakes the controller when somebody opens it. It is opened for reading and writing, which
-- never waits, and closed again; nothing is written and nothing is made.
--
-- slurm_fair_keep(job_desc, job_rec, part_list, modify_uid, options) looks at what a job's owner changes, so that a
-- gate stays what it was at submission: its owner does not move it. A job that is released, gets a longer limit or may
-- not be requeued any more waits behind its gate, or for its own begin time. So does one whose GPUs, nodes, tasks, CPUs,
-- memory, partition, account, QOS, reservation or features change: its gate may have been opened, or taken away, for
-- what it was before. Slurm makes a change part by part, and the gate last: so such a change comes alone, and a job that
-- becomes managed by it is held meanwhile. A job that has its GPUs stays one that can be requeued and that saves
-- (slurm-facts: owners-may-change). Root, and whoever changes a job of somebody else (an admin, the controller), change
-- what they like. The hook is shown neither a job's begin time nor whether it may be requeued, nor whether it takes
-- whole nodes (slurm-facts: hook-sees-changes), so the comment says whose a begin time is, also of a job that is left
-- alone: it may become managed, and then still begins no earlier than its owner wants.
--
-- What it leaves alone: jobs without GPUs that do not ask for whole nodes, heterogeneous jobs (but for
-- unplanned = "refuse"), other partitions, accounts and QOS, srun and salloc unless interactive = "gate", batch jobs
-- that do not say that they can save where plain = "leave", and every job that its user wants to begin later, or holds
-- and that names its GPUs (the controller gates those when their time comes).
-- A deadline is not shown to job_submit by any Slurm: the gate may open behind it, but the controller opens it in time.
-- From 24.11 on Slurm refuses a job whose limit, counted from such a gate, ends behind its deadline ("Requested time
-- limit is invalid"): fair-sbatch sends it with a shorter gate.

local UNSET = 4294967294 -- NO_VAL: how Slurm says that a number was not given
local RUNNING, SUSPENDED = 1, 2
local SILENT_SECONDS = 60 -- beside three intervals: a look may take long
local MOST_BYTES = 4096
local MOST_OF_SLURM = 1024 -- letters of a comment
local ROOM = 32 -- letters of a comment that a key of ours may take
local MOST_LETTERS = 4096 -- of a user's text that is looked at; Slurm takes fewer (slurm-facts: hook-before-bounds)

-- Users write texts of any length, and all of slurmctld waits while we look at one. A longer text is not looked at: its
-- job counts as managed, so that it is gated if Slurm should take it. No pattern reads a letter more than twice.
local function is_too_long(text)
  return text ~= nil and #text > MOST_LETTERS
end

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
  local named = job_desc.partition ~= "" and job_desc.partition or nil
  local asked = named or default_partition(part_list) or ""
  if is_too_long(asked) then
    return true
  end
  for name in string.gmatch(asked, "[^,]+") do
    if contains(names, name) then
      return true
    end
  end
  return false
end

-- The parts of a text that ask for GPUs: "gres:gpu:3", "gres/gpu:a100=2", "gpu:1,gres:shard:2"; not "gres:gpu_mem:4".
local function gpu_parts(tres)
  local next_part = string.gmatch(tres or "", "[^,]+")
  return function()
    for part in next_part do
      local rest = string.match(part, "^gres[:/](.*)$") or part
      if string.match(rest, "^([^:=]+)") == "gpu" and string.match(rest, "[:=](%d+)$") ~= "0" then
        return rest
      end
    end
    return nil
  end
end

local function names_gpus(tres)
  if is_too_long(tres) then
    return true
  end
  return gpu_parts(tres)() ~= nil
end

local GPU_TEXTS = { "tres_per_node", "tres_per_job", "tres_per_socket", "tres_per_task" }
-- NO_VAL and INFINITE of 16 and of 32 bits: how Slurm says that a number was not given.
local NOT_GIVEN = { [65534] = true, [65535] = true, [UNSET] = true, [UNSET + 1] = true }

local function is_given(value)
  return value ~= nil and not NOT_GIVEN[value]
end

-- Slurm works out the GPUs of --ntasks-per-gpu when the hook is through.
local function asks_for_gpus(job_desc)
  for _, name in ipairs(GPU_TEXTS) do
    if names_gpus(job_desc[name]) then
      return true
    end
  end
  return is_given(job_desc.ntasks_per_tres) or is_given(job_desc.ntasks_per_gpu)
end

-- Adds the GPU types that a text names: "gres:gpu:a100:1,gres:gpu:v100:1" has two, "gres:gpu:3" has none.
local function add_types(types, tres)
  for part in gpu_parts(is_too_long(tres) and "" or tres) do
    local kind = string.match(part, "^gpu:([^:=]+)")
    if kind ~= nil and not string.match(kind, "^%d+$") then
      types[kind] = true
    end
  end
end

-- --exclusive, =user, =mcs and =topo. Where all nodes of its partition have GPUs such a job takes them without asking for
-- them; elsewhere the controller takes its gate away.
local WHOLE_NODES = { [0] = true, [2] = true, [3] = true, [4] = true }

local function asks_for_whole_nodes(job_desc)
  return WHOLE_NODES[job_desc.shared] == true and not asks_for_gpus(job_desc)
end

local function names_several_types(texts)
  local types = {}
  for _, text in ipairs(texts) do
    add_types(types, text)
  end
  local first = next(types)
  return first ~= nil and next(types, first) ~= nil
end

local function is_batch(job_desc)
  return job_desc.script ~= nil and job_desc.script ~= ""
end

local function is_heterogeneous(job_desc)
  local offset = job_desc.het_job_offset
  return offset ~= nil and offset ~= UNSET
end

-- A begin time that is as good as now: the controller itself gates a job whose own begin time is so near.
local function is_near(begin_time, now, options)
  return begin_time <= now + (options.near_seconds or 20)
end

-- The controller reads the first word of this form, and none where a value in it is wrong (slurm/reading/stamp.py).
local function has_form(word)
  local keys = string.match(word, "^slurm_fair:v%d(.*)$")
  return keys ~= nil and (string.gsub(keys, ",[a-z]+=[A-Za-z0-9+]+", "")) == ""
end

local GOOD = {
  signal = function(value) return value == "USR1" or value == "USR2" or value == "TERM" end,
  grace = function(value) return #value <= 6 and string.match(value, "^%d+$") ~= nil end,
  gate = function(value)
    return value == "hold" or #value <= 15 and string.match(value, "^uts%d+$") ~= nil
      or #value <= 10 and string.match(value, "^%+%d+$") ~= nil
  end,
}

local function is_stamp(word)
  if not has_form(word) then
    return false
  end
  for key, value in string.gmatch(word, ",([a-z]+)=([^,]*)") do
    if GOOD[key] and not GOOD[key](value) then
      return false
    end
  end
  return true
end

-- The first stamp of a comment, and the places of its first letter and of the one behind it; nil without one.
local function stamp_of(comment)
  for first, word, behind in string.gmatch(is_too_long(comment) and "" or comment or "", "()(%S+)()") do
    if is_stamp(word) then
      return word, first, behind
    end
  end
  return nil
end

-- The value of a key in the stamp; nil without one.
local function said(comment, key)
  return string.match(stamp_of(comment) or "", ".*," .. key .. "=([^,]*)")
end

local function has_gate(comment)
  return said(comment, "gate") ~= nil
end

-- By its user's wish, or by the gate that its template put on it and named in the stamp.
local function waits_already(job_desc, now, options)
  return job_desc.priority == 0 or not is_near(job_desc.begin_time or 0, now, options)
end

-- Words that have the form of a stamp, so that none is read in place of ours.
local function unmade(text)
  return (string.gsub(text, "%S+", function(word)
    return has_form(word) and string.gsub(word, ":", "_", 1) or nil
  end))
end

-- The comment with gate=... or begin=... in the stamp, one in place of the other, or without both where the key is "":
-- the template's stamp, or a new one that says "speaks no protocol".
local function with_key(comment, key)
  local text = comment or ""
  local more = key ~= "" and "," .. key or ""
  local token, first, behind = stamp_of(text)
  if token then
    local bare = string.gsub(string.gsub(token, ",gate=[^,]*", ""), ",begin=[^,]*", "")
    return unmade(string.sub(text, 1, first - 1)) .. bare .. more .. string.sub(text, behind)
  end
  if key == "" or is_too_long(text) then
    return text
  end
  return unmade(text) .. (text ~= "" and " " or "") .. "slurm_fair:v0" .. more
end

-- The keys by which a comment tells whose a begin time is; "" without one.
local function keys_of(comment)
  local gate, begin = said(comment, "gate"), said(comment, "begin")
  local keys = { gate and "gate=" .. gate }
  keys[#keys + 1] = begin and "begin=" .. begin
  return table.concat(keys, ",")
end

-- The begin time of its owner's own that a comment tells of.
local function own_begin(comment)
  local digits = string.match(said(comment, "begin") or "", "^uts(%d+)$")
  return digits and #digits <= 12 and tonumber(digits) or nil
end

-- Writes gate=... or begin=... into the comment, where Slurm takes so long a comment; tells whether it did.
local function note(job_desc, comment, key)
  local text = with_key(comment, key)
  if is_too_long(comment) or #text > MOST_OF_SLURM then
    return false
  end
  job_desc.comment = text
  return true
end

-- Slurm does not show the hook again that a job asked for whole nodes, so the comment of a job without GPUs that may
-- be one tells of a gate beside its begin time, of a time that is no gate of ours.
local NO_GATE = "gate=uts0"

local function note_begin(job_desc, comment, begin, of_gpus)
  return note(job_desc, comment, (of_gpus and "" or NO_GATE .. ",") .. string.format("begin=uts%.0f", begin))
end

local function forget_begin(job_desc, comment, of_gpus)
  if own_begin(comment) then
    job_desc.comment = with_key(comment, of_gpus and "" or NO_GATE)
  end
end

-- Whether the comment says, in a stamp, that the job saves when it is asked.
local function can_save(job_desc)
  local version = string.match(stamp_of(job_desc.comment) or "", "^slurm_fair:v(%d)")
  return version ~= nil and version ~= "0" or is_too_long(job_desc.comment)
end

local function is_of_a_managed_kind(job_desc, options)
  if not is_batch(job_desc) then
    return options.interactive == "gate"
  end
  return options.plain ~= "leave" or can_save(job_desc)
end

-- What cannot be taken back waits for its account's own share: its user is told so where there is a choice.
local function tell_user(job_desc, options)
  if options.plain == "revoke" or not is_batch(job_desc) or can_save(job_desc) or not asks_for_gpus(job_desc) then
    return
  end
  slurm.log_user("slurm_fair: this job cannot save, so it waits for your account's own share of the GPUs; "
    .. "use fair-sbatch to use idle GPUs")
end

-- A job that names no QOS gets one that the hook is not shown.
local function is_managed_qos(names, qos)
  return qos == nil or qos == "" or is_managed(names, qos)
end

local function is_in_scope(job_desc, part_list, options)
  return in_managed_partition(job_desc, part_list, options.partitions)
    and is_managed(options.accounts, job_desc.account or job_desc.default_account)
    and is_managed_qos(options.qos, job_desc.qos)
end

local function is_ours(job_desc, part_list, options)
  return is_of_a_managed_kind(job_desc, options) and not is_heterogeneous(job_desc)
    and (asks_for_gpus(job_desc) or asks_for_whole_nodes(job_desc))
    and is_in_scope(job_desc, part_list, options)
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

-- Behind a begin gate, and the comment that says so. Without the words in the comment the controller takes the gate
-- for a wish of the job's owner: the job waits until the gate opens by itself.
local function gated_from(now, job_desc, comment, options)
  local opens = now + (options.gate_seconds or 1800)
  job_desc.begin_time = opens
  if not note(job_desc, comment, string.format("gate=uts%d", opens)) then
    slurm.log_user("slurm_fair: the comment of this job leaves no room for ours, so the job waits longer; "
      .. "a shorter comment helps")
  end
end

local function refuse(why)
  slurm.log_user("slurm_fair: " .. why)
  return slurm.ESLURM_ACCESS_DENIED or slurm.ERROR
end

local HETEROGENEOUS = "a heterogeneous job with GPUs cannot take turns with others here; "
  .. "submit its parts as jobs of their own"
local SEVERAL_TYPES = "a job with several GPU types cannot take turns with others here; "
  .. "name one type, or submit a job for each"

-- Why nobody can plan this job, where the site refuses such jobs. A reservation is an admin's own word. Any kind is
-- refused: the later parts of a heterogeneous batch job come without a script (slurm-facts: hook-sees-parts).
local function unplanned(job_desc, options)
  if options.unplanned ~= "refuse" or (job_desc.reservation or "") ~= "" then
    return nil
  end
  if is_heterogeneous(job_desc) then
    return HETEROGENEOUS
  end
  local texts = {}
  for _, name in ipairs(GPU_TEXTS) do
    texts[#texts + 1] = job_desc[name]
  end
  return names_several_types(texts) and SEVERAL_TYPES or nil
end

local NO_ROOM = "the comment of this job leaves no room for ours; a shorter one helps"

-- A job that asks for whole nodes has a gate from the start also where it is held: Slurm does not show the hook again
-- what it asked for, so its comment must tell.
local function close_gate(job_desc, part_list, options)
  local now = os.time()
  if is_heterogeneous(job_desc) then
    return
  end
  local ours, waits = is_ours(job_desc, part_list, options), waits_already(job_desc, now, options)
  local begins_later = not is_near(job_desc.begin_time or 0, now, options)
  if begins_later and not has_gate(job_desc.comment) and (waits or not ours) then
    note_begin(job_desc, job_desc.comment, job_desc.begin_time, not (ours and asks_for_whole_nodes(job_desc)))
  end
  if not ours or begins_later or waits and asks_for_gpus(job_desc) then
    return
  end
  if not controller_acts(options.health, now) then
    if asks_for_whole_nodes(job_desc) then
      note(job_desc, job_desc.comment, NO_GATE)
    end
    return
  end
  tell_user(job_desc, options)
  if options.gate == "hold" and not waits and note(job_desc, job_desc.comment, "gate=hold") then
    job_desc.priority = 0
  else
    gated_from(now, job_desc, job_desc.comment, options)
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

-- Why a new job is refused; nil where it is not. Root is refused nothing, and nobody while no controller acts.
local function refusal_at_submission(job_desc, part_list, submit_uid, options)
  local why = asks_for_gpus(job_desc) and unplanned(job_desc, options)
  if why and not is_in_scope(job_desc, part_list, options) then
    why = nil
  end
  if asks_for_whole_nodes(job_desc) and is_ours(job_desc, part_list, options)
    and #with_key(job_desc.comment, "") > MOST_OF_SLURM - ROOM then
    why = NO_ROOM
  end
  return why and submit_uid ~= 0 and controller_acts(options.health, os.time()) and why or nil
end

local function admit(job_desc, part_list, submit_uid, options)
  local why = refusal_at_submission(job_desc, part_list, submit_uid, options)
  if why then
    return refuse(why)
  end
  close_gate(job_desc, part_list, options)
  return slurm.SUCCESS
end

function slurm_fair_gate(job_desc, part_list, submit_uid, options)
  local fine, answer = pcall(admit, job_desc, part_list, submit_uid, options or {})
  if not fine then
    slurm.log_error("slurm_fair: a job of uid %d was let through ungated: %s", submit_uid, tostring(answer))
    answer = slurm.SUCCESS
  end
  if answer == slurm.SUCCESS then
    pcall(wake, job_desc, part_list, options or {})
  end
  return answer
end

-- What an owner changes on a job of its own ------------------------------------------------------------------------

local function is_part(job_rec)
  return (job_rec.het_job_id or 0) ~= 0
end

local function is_record_of_gpus(job_rec)
  return names_gpus(job_rec.gres_req) or asks_for_gpus(job_rec)
end

-- What it was or what it becomes may take GPUs. A job whose comment tells of a gate may have asked for whole nodes.
local function may_take_gpus(job_desc, job_rec)
  return is_record_of_gpus(job_rec) or asks_for_gpus(job_desc) or asks_for_whole_nodes(job_desc)
    or has_gate(job_rec.comment)
end

-- A place where jobs take turns: the managed partitions and QOS, for managed accounts, outside reservations.
local function is_here(job_desc, job_rec, part_list, options)
  return (job_desc.reservation or job_rec.resv_name or "") == ""
    and in_managed_partition({ partition = job_desc.partition or job_rec.partition }, part_list, options.partitions)
    and is_managed(options.accounts, job_desc.account or job_rec.account)
    and is_managed_qos(options.qos, job_desc.qos or job_rec.qos)
end

-- What it was or what it becomes says that it can save.
local function is_managed_record(job_desc, job_rec, options)
  local was, becomes = { script = "batch", comment = job_rec.comment }, { script = "batch", comment = job_desc.comment }
  return not is_part(job_rec) and (is_of_a_managed_kind(was, options) or is_of_a_managed_kind(becomes, options))
end

-- Why nobody can plan what a change makes of a waiting job: GPUs, or a place where jobs take turns.
local function becomes_unplanned(job_desc, job_rec, options)
  local asks = asks_for_gpus(job_desc)
  if options.unplanned ~= "refuse"
    or not (asks or job_desc.partition or job_desc.account or job_desc.reservation) then
    return nil
  end
  if is_part(job_rec) then
    return HETEROGENEOUS
  end
  local texts = { asks and "" or job_rec.gres_req or "" }
  for _, name in ipairs(GPU_TEXTS) do
    texts[#texts + 1] = job_desc[name] or job_rec[name]
  end
  return names_several_types(texts) and SEVERAL_TYPES or nil
end

-- What makes a job managed or not, and what its gate was opened for.
local SHAPE = {
  "tres_per_node", "tres_per_job", "tres_per_socket", "tres_per_task", "partition", "account", "qos", "reservation",
  "req_nodes", "exc_nodes", "features", "min_nodes", "max_nodes", "num_tasks", "min_cpus", "cpus_per_task",
  "pn_min_cpus", "ntasks_per_node", "min_mem_per_node", "min_mem_per_cpu", "shared", "ntasks_per_tres",
  "ntasks_per_gpu", "ntasks_per_socket", "sockets_per_node", "cores_per_socket", "threads_per_core", "cpus_per_tres",
  "mem_per_tres",
}
-- What else a change may give: Slurm may refuse it when it has made the rest of the change, but not set the gate.
local OTHERS = {
  "nice", "contiguous", "core_spec", "delay_boot", "time_min", "dependency", "licenses", "wckey", "clusters",
  "cluster_features",
}

local function gives_any(job_desc, names)
  for _, name in ipairs(names) do
    if is_given(job_desc[name]) then
      return true
    end
  end
  return false
end

local function changes_shape(job_desc, job_rec)
  local saves = job_desc.comment ~= nil and can_save(job_desc) ~= can_save(job_rec)
  return saves or gives_any(job_desc, SHAPE)
end

local function is_released(job_desc, job_rec)
  return job_rec.priority == 0 and job_desc.priority ~= UNSET and job_desc.priority ~= 0
end

local function gets_a_longer_limit(job_desc, job_rec)
  local limit = job_desc.time_limit or UNSET
  return limit ~= UNSET and limit > (job_rec.time_limit or 0)
end

-- A held job that is let go, or one that could be taken back until now or was another, perhaps with its gate open.
local function waits_anew(job_desc, job_rec)
  local other = changes_shape(job_desc, job_rec)
  if job_rec.priority == 0 then
    return other or is_released(job_desc, job_rec)
  end
  return other or gets_a_longer_limit(job_desc, job_rec) or job_desc.requeue == 0
end

-- Slurm makes a change part by part, and sets the hook's gate last. Where it refuses a part, those before it are made.
local function is_one_thing(job_desc, job_rec)
  if is_released(job_desc, job_rec) then
    return not gives_any(job_desc, OTHERS) and not gives_any(job_desc, SHAPE)
      and not gets_a_longer_limit(job_desc, job_rec)
  end
  return job_rec.priority == 0 or not waits_anew(job_desc, job_rec) or not gives_any(job_desc, OTHERS)
end

-- The words of ours go into the comment that a job's owner writes in its place; false where there is no room. Who has
-- GPUs as a job that saves when it is asked goes on to say so.
local function carry_words(job_desc, job_rec, has_gpus)
  local token = stamp_of(job_rec.comment)
  if job_desc.comment == nil or token == nil then
    return true
  end
  local text = job_desc.comment
  if stamp_of(text) == nil or has_gpus and can_save(job_rec) and not can_save(job_desc) then
    text = unmade(text) .. (text ~= "" and " " or "") .. with_key(token, "")
  end
  text = with_key(text, keys_of(job_rec.comment))
  if #text > MOST_OF_SLURM - ROOM then
    return false
  end
  job_desc.comment = text
  return true
end

local function keep_waiting(job_desc, job_rec, of_gpus, options)
  local now, begin = os.time(), job_desc.begin_time or 0
  local comment = job_desc.comment or job_rec.comment
  local own = own_begin(comment)
  if begin ~= 0 and not is_near(begin, now, options) then
    if not note_begin(job_desc, comment, begin, of_gpus) then
      return refuse(NO_ROOM)
    end
  elseif waits_anew(job_desc, job_rec) then
    if begin == 0 and own ~= nil and not is_near(own, now, options) then
      job_desc.begin_time = own
      if not of_gpus then
        note_begin(job_desc, comment, own, false)
      end
    else
      gated_from(now, job_desc, comment, options)
    end
  elseif begin ~= 0 and job_rec.priority == 0 then
    forget_begin(job_desc, comment, of_gpus) -- it waits behind its gate when it is released
  elseif begin ~= 0 and (own ~= nil or keys_of(comment) == "") then
    gated_from(now, job_desc, comment, options)
  elseif begin ~= 0 then
    return refuse("the gate of this job is not yours to move; what is owed to your account starts by itself")
  end
  return slurm.SUCCESS
end

-- Nobody gates this job now. Its comment goes on to tell its owner's begin time: a later change may gate the job.
local function follow_begin(job_desc, job_rec, of_gpus, options)
  local begin, comment = job_desc.begin_time or 0, job_desc.comment or job_rec.comment
  if begin == 0 or is_part(job_rec) then
    return slurm.SUCCESS
  end
  if not is_near(begin, os.time(), options) then
    note_begin(job_desc, comment, begin, of_gpus)
  else
    forget_begin(job_desc, comment, of_gpus)
  end
  return slurm.SUCCESS
end

local HOLD_FIRST = "this change brings the job among those that take turns; hold it, change it, and release it"
local SEND_ANEW = "a job without GPUs is not brought among those that take turns; submit it there"
local ALONE = "a job that waits for its turn anew by this change changes in nothing else, unless it is held"

-- Why a change of a waiting job is refused; nil where it is not. Slurm may refuse a part of a change when it has made
-- the rest, and sets no gate then: so a job that has none yet is held meanwhile.
local function refusal(job_desc, job_rec, part_list, acts, options)
  local here = is_here(job_desc, job_rec, part_list, options)
  local of_gpus, may = is_record_of_gpus(job_rec) or asks_for_gpus(job_desc), may_take_gpus(job_desc, job_rec)
  local why = acts and here and of_gpus and becomes_unplanned(job_desc, job_rec, options)
  if why or not acts or not here or not is_managed_record(job_desc, job_rec, options) then
    return why or nil
  end
  local was_here = is_here({}, job_rec, part_list, options)
  if not may then
    return not was_here and SEND_ANEW or nil
  end
  local had_gpus = is_record_of_gpus(job_rec) or has_gate(job_rec.comment) and not asks_for_gpus(job_desc)
  local was_managed = was_here and had_gpus and is_managed_record({}, job_rec, options)
  if not was_managed and job_rec.priority ~= 0 then
    return HOLD_FIRST
  end
  return not is_one_thing(job_desc, job_rec) and ALONE or nil
end

local function keep(job_desc, job_rec, part_list, options)
  local state = (job_rec.job_state or 0) % 256 -- the flags are above
  if state > SUSPENDED then
    return slurm.SUCCESS
  end
  local managed = may_take_gpus(job_desc, job_rec) and is_here(job_desc, job_rec, part_list, options)
    and is_managed_record(job_desc, job_rec, options)
  local acts = controller_acts(options.health, os.time())
  local why = not carry_words(job_desc, job_rec, state >= RUNNING) and managed and acts and NO_ROOM
  if state < RUNNING then
    why = why or refusal(job_desc, job_rec, part_list, acts, options)
  elseif managed and acts and job_desc.requeue == 0 then
    why = why or "a job got its GPUs as one that can be requeued, and stays so while it runs"
  end
  if why then
    return refuse(why)
  end
  if state >= RUNNING then
    return slurm.SUCCESS
  end
  local of_gpus = is_record_of_gpus(job_rec) or asks_for_gpus(job_desc)
  if not managed or not acts then
    return follow_begin(job_desc, job_rec, of_gpus or not has_gate(job_rec.comment), options)
  end
  return keep_waiting(job_desc, job_rec, of_gpus, options)
end

-- A change of an array comes once for each of its records, each time as the hook left it: what the hook wrote for one
-- record is not what the owner wrote for the next.
local last = {}

local function as_its_owner_wrote_it(job_desc, job_rec)
  local now, array = os.time(), job_rec.array_job_id or 0
  local same = array ~= 0 and last.array == array and now <= last.at + 1
    and job_desc.begin_time == last.begin_now and job_desc.comment == last.comment_now
  if same then
    job_desc.begin_time = last.begin
    local taken = pcall(function() job_desc.comment = last.comment end)
    if not taken then
      job_desc.comment = "" -- so Slurm has it where there is none: it takes no nil
    end
  else
    last = { array = array, begin = job_desc.begin_time, comment = job_desc.comment }
  end
  last.at = now
end

function slurm_fair_keep(job_desc, job_rec, part_list, modify_uid, options)
  if modify_uid == 0 or modify_uid ~= job_rec.user_id then
    return slurm.SUCCESS
  end
  local fine, answer = pcall(function()
    as_its_owner_wrote_it(job_desc, job_rec)
    return keep(job_desc, job_rec, part_list, options or {})
  end)
  last.begin_now, last.comment_now = job_desc.begin_time, job_desc.comment
  if fine then
    return answer
  end
  slurm.log_error("slurm_fair: a change by uid %d was let through: %s", modify_uid, tostring(answer))
  return slurm.SUCCESS
end

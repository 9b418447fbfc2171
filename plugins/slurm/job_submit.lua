-- A complete job_submit script with the gate alone: put it and slurm_fair_gate.lua beside slurm.conf and set
-- JobSubmitPlugins=lua. A site that has a script of its own copies the dofile line and the call into it.

local settings = {
  partitions = {},     -- managed partitions, such as {"gpu"}; empty: all
  accounts = {},       -- managed accounts (tenants); empty: all
  qos = {},            -- managed QOS; empty: all
  gate = "begin",      -- "begin": Slurm itself opens the gate after gate_seconds; "hold": only the controller does
  gate_seconds = 1800, -- two leases
  near_seconds = 20,   -- two intervals between looks: a begin time so near is as good as now
  plain = "quota",     -- batch jobs that do not say that they can save; "leave": they are not gated
  interactive = "leave", -- srun and salloc; "gate": they are gated too
  unplanned = "leave", -- heterogeneous jobs and jobs with several GPU types; "refuse": Slurm does not take them
  health = "",         -- the controller's health.json on this machine: no job is gated while it does not act; "": gate
  wake = "",           -- the controller's wake-up on this machine: it looks at once at a new job; "": nobody is woken
}

-- Slurm loads this file by its path, so the function lies in the same folder, wherever that is.
local here = string.match(debug.getinfo(1, "S").source, "^@(.*/)") or "/etc/slurm/"
dofile(here .. "slurm_fair_gate.lua")

function slurm_job_submit(job_desc, part_list, submit_uid)
  return slurm_fair_gate(job_desc, part_list, submit_uid, settings)
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm_fair_keep(job_desc, job_rec, part_list, modify_uid, settings)
end

"""`python -I -m slurm_fair.planner MEMORY_MB PID_OF_ITS_PARENT`: the planning process."""

from slurm_fair.planner.child import main

main()

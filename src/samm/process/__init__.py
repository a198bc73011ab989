"""The mathematics without a network in it: schedules, paths, the kernel, the losses."""

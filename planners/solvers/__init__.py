"""The methods, one file each, all driven by `planners.iterate`."""

"""From problems to answers: functions of (model, problems, generator, options)."""

"""What is true of several systems at once, or of numbers: rounding, who expresses whom, decay, gauges, exact truths."""

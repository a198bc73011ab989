"""Where examples come from: generators, readers, the data format, batches on the device."""

"""One model call: request to reply, with cache, single flight, limits, budget and retries."""

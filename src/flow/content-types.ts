/** What answers are, as their head says it. */
export const json = 'application/json'
export const eventStream = 'text/event-stream; charset=utf-8'

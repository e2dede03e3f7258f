/** The `content-type` headers of answers. */
export const json = 'application/json'
export const eventStream = 'text/event-stream; charset=utf-8'

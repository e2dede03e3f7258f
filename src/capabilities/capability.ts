/** What can be asked of the gateway. A new line here makes the compiler name every place to fill. */
export const capabilities = ['chat', 'embeddings', 'images', 'edits', 'speech', 'video'] as const
export type Capability = (typeof capabilities)[number]

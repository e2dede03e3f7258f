/** What can be asked of the gateway. A new one here makes the compiler name places to fill; CONTRIBUTING.md has all. */
export const capabilities = ['chat', 'embeddings', 'images', 'edits', 'speech', 'video'] as const
export type Capability = (typeof capabilities)[number]

/** Where each is asked for. */
export const pathsOf = {
  chat: '/v1/chat/completions',
  embeddings: '/v1/embeddings',
  images: '/v1/images/generations',
  edits: '/v1/images/edits',
  speech: '/v1/audio/speech',
  video: '/v1/videos/generations',
} as const satisfies Record<Capability, string>

/** What can be asked of the gateway. The compiler names places that a new one has to fill; CONTRIBUTING.md has all. */
export const capabilities = ['chat', 'embeddings', 'images', 'edits', 'speech', 'video'] as const
export type Capability = (typeof capabilities)[number]

/** The path of each capability. */
export const pathsOf = {
  chat: '/v1/chat/completions',
  embeddings: '/v1/embeddings',
  images: '/v1/images/generations',
  edits: '/v1/images/edits',
  speech: '/v1/audio/speech',
  video: '/v1/videos/generations',
} as const satisfies Record<Capability, string>

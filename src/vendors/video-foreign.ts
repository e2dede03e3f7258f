/**
 * Parameters of one or two families, and of ours: no other vendor is sent them. Each adapter adds what it writes elsewhere,
 * or knows under another name.
 */
export const seldomKnown = [
  'generate_audio',
  'camera_fixed',
  'draft',
  'return_last_frame',
  'safety_identifier',
  'priority',
  'execution_expires_after',
  'service_tier',
  'tools',
  'n',
  'sampleCount',
] as const

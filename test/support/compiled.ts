import { join } from 'node:path'

/**
 * Where Bun caches compiled code. By default that is the home folder, and with a new one every process would compile
 * the whole program again and spend half of its start on that.
 */
export const compiled = {
  BUN_RUNTIME_TRANSPILER_CACHE_PATH: join(import.meta.dir, '../../node_modules/.cache/turnpike'),
} satisfies Readonly<Record<string, string>>

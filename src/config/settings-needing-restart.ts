import { isObject } from '../base/json.ts'
import type { FileSettings } from './schema.ts'

const takenAtOnce: ReadonlySet<string> = new Set(['channels', 'models', 'exchange'] satisfies (keyof FileSettings)[])

/** The changed settings of a file that take effect only at the next start, by their paths: `limits.attemptsMax`. */
export function settingsNeedingRestart(used: FileSettings, written: FileSettings): string[] {
  return differences(used, written).filter((path) => !takenAtOnce.has(path.split('.')[0] ?? ''))
}

function differences(used: object, written: object, prefix = ''): string[] {
  const before = new Map<string, unknown>(Object.entries(used))
  const after = new Map<string, unknown>(Object.entries(written))
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) => {
    const [old, changed] = [before.get(name), after.get(name)]
    if (isObject(old) && isObject(changed)) return differences(old, changed, `${prefix}${name}.`)
    return JSON.stringify(old) === JSON.stringify(changed) ? [] : [prefix + name]
  })
}

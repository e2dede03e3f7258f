import { systemClock } from '../base/clock.ts'
import { isObject } from '../base/json.ts'
import { EnvironmentError } from '../config/environment.ts'
import { ConfigError, isAmong, type ConfigFile, type UnfilledFile } from '../config/file.ts'
import { readCatalogue, readChannels } from '../plan.ts'
import { channelsOfVariables } from '../upstream/vendor-variables.ts'

// Enough to work on; each further complaint costs another reading of the whole catalogue.
const complaintsMax = 50

type List = 'channels' | 'models'

/** Everything that a start would refuse this file for. A start stops at the first; an operator wants them all. */
export function complaintsAbout(
  { file, unset }: UnfilledFile,
  variables: Readonly<Record<string, string | undefined>>,
  isSandbox: boolean,
): (ConfigError | EnvironmentError)[] {
  const inFile = [
    // Read without the variables: for a channel that is taken out, its vendor's variable would make another.
    ...faultsIn(file, 'channels', (rest) => readChannels(rest, {})),
    ...faultsIn(file, 'models', (rest) => readCatalogue(rest, isSandbox, systemClock)),
  ]
  return [...faultOfVariables(file, variables), ...together(inFile, unset)]
}

/** As one error, since an error has its complaints in the order of the file. */
function together(errors: readonly ConfigError[], unset: ConfigError | undefined): ConfigError[] {
  const before = unset?.complaints ?? []
  const further = errors.flatMap(({ complaints }) => complaints).filter((each) => !isAmong(before, each))
  const name = (unset ?? errors[0])?.file
  return name === undefined ? [] : [new ConfigError(name, [...before, ...further])]
}

function faultOfVariables(
  { settings }: ConfigFile,
  variables: Readonly<Record<string, string | undefined>>,
): EnvironmentError[] {
  try {
    channelsOfVariables(settings.channels, variables)
    return []
  } catch (thrown) {
    if (thrown instanceof EnvironmentError) return [thrown]
    throw thrown
  }
}

/** Reads as a start does; after each fault it takes the faulty entry out and reads the rest again. */
function faultsIn(file: ConfigFile, list: List, read: (rest: ConfigFile) => unknown): ConfigError[] {
  const found: ConfigError[] = []
  let kept = file.settings[list].map((entry, place) => ({ entry, place }))
  let { exchange } = file.settings
  while (found.length < complaintsMax) {
    let at: readonly PropertyKey[] = []
    const rest: ConfigFile = {
      settings: { ...file.settings, exchange, [list]: kept.map(({ entry }) => entry) },
      complain(path, message) {
        at = path
        const place = path[0] === list ? kept[Number(path[1])]?.place : undefined
        return file.complain(place === undefined ? path : [list, place, ...path.slice(2)], message)
      },
    }
    try {
      read(rest)
      return found
    } catch (thrown) {
      if (!(thrown instanceof ConfigError)) throw thrown
      found.push(thrown)
    }
    const [root, step] = at
    const out = root === list ? kept[Number(step)] : undefined
    if (out !== undefined) kept = kept.filter((each) => each !== out && !copies(each.entry, out.entry))
    else if (root === 'exchange') exchange = withoutRate(exchange, String(step))
    else return found
  }
  return found
}

/** Replaces a faulty rate, since without one every price in that currency would be at fault. The dollar takes none. */
function withoutRate(exchange: ConfigFile['settings']['exchange'], currency: string) {
  const { [currency]: _, ...others } = exchange
  return currency === 'USD' ? others : { ...others, [currency]: '1' }
}

/** Whether an entry is a copy (`from`) of a faulty one: its faults would only repeat those of the original. */
function copies(entry: unknown, original: unknown): boolean {
  return isObject(entry) && isObject(original) && entry['from'] !== undefined && entry['from'] === original['id']
}

import { isObject } from '../base/json.ts'
import { EnvironmentError } from '../config/environment.ts'
import { ConfigError, type ConfigFile } from '../config/file.ts'
import { readCatalogue, readChannels } from '../market.ts'
import { channelsOfVariables } from '../upstream/vendor-variables.ts'

// Enough to work on; each further one costs another look at the whole catalogue.
const complaintsMax = 50

type List = 'channels' | 'models'

/** Everything that a start would refuse this file for. A start stops at the first; an operator wants them all. */
export function complaintsAbout(
  file: ConfigFile,
  variables: Readonly<Record<string, string | undefined>>,
  isSandbox: boolean,
): (ConfigError | EnvironmentError)[] {
  return [
    ...faultOfVariables(file, variables),
    // Without the variables: a channel that is taken out would have the variable of its vendor make another.
    ...faultsIn(file, 'channels', (rest) => readChannels(rest, {})),
    ...faultsIn(file, 'models', (rest) => readCatalogue(rest, isSandbox)),
  ]
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

/** Reads as a start does; takes what is at fault out, and reads the rest again. */
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

/** A rate of some kind stays, or every price in that currency would be at fault too. The dollar takes none. */
function withoutRate(exchange: ConfigFile['settings']['exchange'], currency: string) {
  const { [currency]: _, ...others } = exchange
  return currency === 'USD' ? others : { ...others, [currency]: '1' }
}

/** A copy of an entry at fault has no fault of its own to speak of. */
function copies(entry: unknown, original: unknown): boolean {
  return isObject(entry) && isObject(original) && entry['from'] !== undefined && entry['from'] === original['id']
}

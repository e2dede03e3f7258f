import { existsSync } from 'node:fs'
import type { Clock } from '../base/clock.ts'
import { isEverywhere } from '../base/listen.ts'
import type { Model } from '../catalogue/model.ts'
import { databaseFile, type Environment } from '../config/environment.ts'
import type { ConfigFile } from '../config/file.ts'
import { replacedSecretFile, exposedSecretFile } from '../config/installation-secret.ts'
import { readChannels } from '../plan.ts'
import type { Mode } from '../store/schema.ts'
import { ignoredVariables, type IgnoredVariable } from '../upstream/vendor-variables.ts'

type Start = {
  readonly environment: Environment
  readonly file: ConfigFile
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly mode: Mode
  /** The models that are served. */
  readonly models: ReadonlyMap<string, Model>
  /** Decides which announced ends of models are near. */
  readonly clock: Pick<Clock, 'now'>
}

/** What is worth knowing of a start that works, for `check` and for the greeting. */
export type Remarks = {
  readonly ignored: readonly IgnoredVariable[]
  /** How many models are sold at unverified prices; 0 in sandbox mode, where play money needs no checking. */
  readonly unverified: number
  /** The same in words, a line for each. */
  readonly lines: readonly string[]
}

export function remarksOn({ environment, file, variables, mode, models, clock }: Start): Remarks {
  const ignored = ignoredVariables(file.settings.channels, variables)
  const unverified = mode === 'sandbox' ? 0 : [...models.values()].filter(isDoubtful).length
  const lines = ignored.map(({ variable, why }) => `${variable} is set and not used: ${why} (docs/vendors.md).`)
  // Whoever began with the sandbox in this folder expects it again once no vendor is configured.
  if (mode === 'real' && file.settings.sandbox === undefined && readChannels(file, variables).length === 0) {
    lines.push('The sandbox is off because a real account exists: sandbox: true in turnpike.yaml turns it on.')
  }
  const forgotten = replacedSecretFile(environment.secret, environment.dataFolder)
  if (forgotten !== undefined) {
    lines.push(`${forgotten} holds a different secret than TURNPIKE_SECRET: keys made under it do not work.`)
  }
  const left = databaseFile(environment)
  if (environment.databaseUrl !== undefined && existsSync(left)) {
    lines.push(
      `${left} is not used because DATABASE_URL is set: npx turnpike move-to-postgres moves it (docs/operators.md).`,
    )
  }
  const open = exposedSecretFile(environment.secret, environment.dataFolder)
  if (open !== undefined) {
    lines.push(`${open} can be read or changed by other users of this machine: run chmod 600 on it (SECURITY.md).`)
  }
  if (isEverywhere(environment.host) && file.settings.publicUrl === undefined) {
    const until = 'until publicUrl in turnpike.yaml names the address for customers'
    lines.push(`Links to kept results work only on this machine, ${until} (docs/operators.md).`)
  }
  const dearer = [...models.values()].filter(isDearerCached).map(({ id }) => id)
  if (dearer.length > 0) {
    const which = dearer.slice(0, namedMax).join(', ') + (dearer.length > namedMax ? ', …' : '')
    lines.push(`Cached input costs more than other input on ${which}: cachedInputPerMillion was not lowered with it.`)
  }
  if (unverified > 0) {
    const which = 'npx turnpike models says which, under CONFIDENCE, and models: in turnpike.yaml sets your own'
    lines.push(`${unverified} of these models ${unverified === 1 ? 'has' : 'have'} unverified prices: ${which}.`)
  }
  // Simulated models do not end.
  if (mode === 'real') lines.push(...remarksOnEnds([...models.values()], clock.now()))
  return { ignored, unverified, lines }
}

const namedMax = 5

/** Customers need some weeks to move to another model. */
const endNearMs = 60 * 86_400_000

/** A date that has passed counts too: the model is still on sale. */
function remarksOnEnds(models: readonly Model[], now: number): string[] {
  const dates = models.flatMap(({ end }) => (end === undefined ? [] : [end.date])).toSorted()
  const near = dates.filter((date) => Date.parse(date) < now + endNearMs)
  const [first, last] = [near[0], near.at(-1)]
  if (first === undefined || last === undefined) return []
  const what =
    near.length === 1 ? '1 of these models ends at its vendor' : `${near.length} of these models end at their vendors`
  const when = first === last ? `on ${first}` : `between ${first} and ${last}`
  return [`${what} ${when}: npx turnpike models says which, under ENDS (docs/operators.md).`]
}

/** Of prices that an override does not give, the catalogue's stay. */
function isDearerCached({ prices: { rates } }: Model): boolean {
  return rates.input !== undefined && rates.cachedInput !== undefined && rates.cachedInput > rates.input
}

function isDoubtful({ confidence }: Model): boolean {
  return confidence === 'unverified'
}

import { EnvironmentError } from '../config/environment.ts'
import type { ChannelEntry } from '../config/schema.ts'
import { vendors } from '../vendors/index.ts'
import type { Vendor } from '../vendors/vendor.ts'
import type { Channel } from './channels.ts'
import { faultOfKey } from './key-form.ts'

type Variables = Readonly<Record<string, string | undefined>>

/** A vendor's usual variable that is set but has no effect. */
export type IgnoredVariable = { readonly variable: string; readonly why: string }

/** A channel for every vendor whose usual variable is set and that the file does not name. */
export function channelsOfVariables(entries: readonly ChannelEntry[], variables: Variables): Channel[] {
  const found: Channel[] = []
  for (const vendor of vendors.values()) {
    const [variable] = variablesOf(vendor, variables)
    if (variable === undefined || whyNone(vendor, entries) !== undefined) continue
    const key = variables[variable] ?? ''
    const fault = faultOfKey(vendor, key)
    if (fault !== undefined) throw new EnvironmentError(`${variable} must be ${fault}`)
    found.push({ id: vendor.id, vendor, baseUrl: vendor.baseUrl, credentials: [key], weight: 1, priority: 0 })
  }
  return found
}

/** Variables that are set in vain, which operators should know. A key that a channel of the file has is not lost. */
export function ignoredVariables(entries: readonly ChannelEntry[], variables: Variables): IgnoredVariable[] {
  const used = new Set(entries.flatMap(({ keys }) => keys))
  return [...vendors.values()].flatMap((vendor) => {
    const [first, ...others] = variablesOf(vendor, variables)
    if (first === undefined) return []
    const isLost = (variable: string) => !used.has(variables[variable] ?? '')
    const why = whyNone(vendor, entries)
    if (why !== undefined) return [first, ...others].filter(isLost).map((variable) => ({ variable, why }))
    return others
      .filter((variable) => variables[variable] !== variables[first] && isLost(variable))
      .map((variable) => ({ variable, why: `${first} has the key of vendor ${vendor.id}` }))
  })
}

/** The vendor's variables that are set, the most usual first. An empty variable counts as absent. */
function variablesOf({ environment }: Vendor, variables: Variables): string[] {
  return environment.filter((name) => variables[name])
}

function whyNone(vendor: Vendor, entries: readonly ChannelEntry[]): string | undefined {
  if (entries.some((entry) => entry.vendor === vendor.id)) return `the file has channels of vendor ${vendor.id}`
  if (entries.some((entry) => entry.id === vendor.id)) return `the file has a channel ${vendor.id} of another vendor`
  // A key alone does not say at which address the operator's own resource is.
  return vendor.baseUrl === '' ? `vendor ${vendor.id} needs a channel with a baseUrl in turnpike.yaml` : undefined
}

/**
 * One file of the package, and as much of it as is used. Its index loads a web client, a cluster and metrics of its own,
 * which takes six times as long.
 */
declare module 'prom-client/lib/registry.js' {
  type Value = {
    readonly labels: Readonly<Record<string, string>>
    readonly value: number
    /** Where it is not the name of the metric: the parts of a histogram have their own. */
    readonly metricName?: string
  }

  type Read = { readonly name: string; readonly help: string; readonly type: string; readonly values: readonly Value[] }

  class Registry {
    readonly contentType: string
    /** Throws where another one has the name. */
    registerMetric(metric: { readonly name: string; get(): Promise<Read> }): void
    metrics(): Promise<string>
  }

  export = Registry
}

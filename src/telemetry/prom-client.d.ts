/**
 * Types for one file of the package, as far as it is used. The package's index also loads a web client, a cluster
 * module and default metrics, which takes six times as long.
 */
declare module 'prom-client/lib/registry.js' {
  type Value = {
    readonly labels: Readonly<Record<string, string>>
    readonly value: number
    /** Given where it is not the name of the metric: the parts of a histogram have their own names. */
    readonly metricName?: string
  }

  type Read = { readonly name: string; readonly help: string; readonly type: string; readonly values: readonly Value[] }

  class Registry {
    readonly contentType: string
    /** Throws if another metric has the same name. */
    registerMetric(metric: { readonly name: string; get(): Promise<Read> }): void
    metrics(): Promise<string>
  }

  export = Registry
}

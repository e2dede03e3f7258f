import { changeKey } from '../../src/store/keys.ts'
import type { KeyLimits } from '../../src/store/schema.ts'
import type { TestGateway } from './gateway.ts'

/** Limits a new key. It has not been looked up yet, so the limits apply from its first request on. */
export async function setLimits(gateway: TestGateway, keyId: string, limits: KeyLimits): Promise<void> {
  await changeKey(gateway.store, { id: keyId, actor: 'test', limits })
}

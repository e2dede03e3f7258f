import { changeKey } from '../../src/store/keys.ts'
import type { KeyLimits } from '../../src/store/schema.ts'
import type { TestGateway } from './gateway.ts'

/** Limits a key that was just made: nobody has looked it up yet, so they count from its first request on. */
export async function setLimits(gateway: TestGateway, keyId: string, limits: KeyLimits): Promise<void> {
  await changeKey(gateway.store, { id: keyId, actor: 'test', limits })
}

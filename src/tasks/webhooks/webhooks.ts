import { systemTimers, type Timers } from '../../base/clock.ts'
import { makeGuardedFetch, type Outside } from '../../base/guarded-fetch.ts'
import { GuardRefusal, strictPolicy, type GuardPolicy } from '../../base/untrusted-url.ts'
import type { Mode } from '../../store/schema.ts'
import { webhookRefusal } from '../../wire/native/webhook-refusal.ts'
import { Courier, type CourierParts } from './courier.ts'
import { makeWebhookSecrets, type WebhookSecrets } from './secrets.ts'

/** Delivers the events of tasks from the outbox to the URLs that clients gave. */
export type Webhooks = {
  readonly secrets: WebhookSecrets
  /** For the request in which a client gives a URL: throws a 400 where events would not be delivered to it. */
  checkUrl(url: string, signal?: AbortSignal): Promise<void>
  /** To be called once an event is committed on this node, so that it does not wait for the next look. */
  wake(): void
  close(options: { readonly withinMs: number }): Promise<void>
}

export type WebhookParts = Omit<CourierParts, 'fetch' | 'secrets' | 'timers'> & {
  /** The installation's secret. */
  readonly secret: Uint8Array
  readonly settings: { readonly allowPrivate: boolean }
  readonly timers?: Timers
  /** Lets tests treat a part of the loopback addresses as the open internet. */
  readonly outside?: Partial<Outside>
}

export function openWebhooks(parts: WebhookParts): Webhooks {
  const { timers = systemTimers } = parts
  const secrets = makeWebhookSecrets(parts)
  const policy = webhookPolicy(parts.mode, parts.settings)
  const fetch = makeGuardedFetch(policy, parts.outside)
  const courier = new Courier({ ...parts, timers, secrets, fetch })
  return {
    secrets,
    async checkUrl(url, signal) {
      try {
        await fetch.check(url, signal === undefined ? {} : { signal })
      } catch (thrown) {
        throw thrown instanceof GuardRefusal ? webhookRefusal(thrown, policy, 'webhook_url') : thrown
      }
    },
    wake: () => courier.wake(),
    close: (options) => courier.close(options),
  }
}

/** Where events may go, as far as a URL's text shows. In the sandbox a receiver may run on the gateway's machine. */
export function webhookPolicy(mode: Mode, settings: WebhookParts['settings']): GuardPolicy {
  if (settings.allowPrivate) return { schemes: 'https-and-http', addresses: 'private', ports: 'any' }
  return mode === 'sandbox' ? { schemes: 'https-and-http', addresses: 'loopback', ports: 'any' } : strictPolicy
}

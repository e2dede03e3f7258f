import { GatewayError } from '../base/errors.ts'
import { pathsOf, type Capability } from '../capabilities/capability.ts'
import type { Model, ModelsOnOffer } from '../catalogue/model.ts'
import { nearestId } from '../catalogue/nearest-id.ts'
import type { Principal } from '../keys/key-ring.ts'

type User = Pick<Principal, 'mayUse'>

/** A model the key may not use must look exactly like one that does not exist. */
export function findModel(models: ModelsOnOffer, principal: User, id: string): Model {
  const model = models.get(id)
  if (model === undefined || !principal.mayUse(id)) throw unknownModel(models, principal, id)
  return model
}

export function findModelFor(capability: Capability, models: ModelsOnOffer, principal: User, id: string): Model {
  const model = findModel(models, principal, id)
  if (!model.capabilities.includes(capability)) {
    const places = model.capabilities.map((does) => `${does} (\`${pathsOf[does]}\`)`).join(' and ')
    const message = `The model \`${id}\` does not do ${capability}; it is for ${places}.`
    throw new GatewayError('wrong-capability', message, { param: 'model' })
  }
  return model
}

const shownIdCharactersMax = 100

function unknownModel(models: ModelsOnOffer, principal: User, id: string): GatewayError {
  // The id is the client's own text, so it is shortened and stripped of characters that could break a log line.
  const shown = id.slice(0, shownIdCharactersMax).replace(/[^\x20-\x7e]/g, '?')
  const isUnpriced = models.unpriced?.has(id) === true && principal.mayUse(id)
  const meant = isUnpriced ? respelled(models, principal, id) : meantIds(models, principal, id)
  const hint = meant.length === 0 ? '' : ` Did you mean ${meant.map((likely) => `\`${likely}\``).join(' or ')}?`
  if (isUnpriced) {
    const message = `The model \`${id}\` has no price here, and is not sold until the operator sets one.${hint}`
    return new GatewayError('unknown-model', message, { param: 'model' })
  }
  const message = `The model \`${shown}\` does not exist or you do not have access to it.${hint}`
  return new GatewayError('unknown-model', message, { param: 'model' })
}

/** What a client may have meant: the id in our spelling or, if there is none, the nearest one. */
function meantIds(models: ModelsOnOffer, principal: User, id: string): readonly string[] {
  const known = respelled(models, principal, id)
  if (known.length > 0) return known
  const mayUse = (other: string) => principal.mayUse(other)
  return [...new Set(likelyIds(id).flatMap((likely) => nearestId(models.keys(), likely, mayUse) ?? []))]
}

function respelled(models: ModelsOnOffer, principal: User, id: string): readonly string[] {
  return likelyIds(id).filter((likely) => models.has(likely) && principal.mayUse(likely))
}

/**
 * The ids that a client may have meant, by our spelling (lower case, words separated by `-`), with and without a vendor
 * prefix.
 */
function likelyIds(id: string): readonly string[] {
  if (id.length > shownIdCharactersMax) return []
  const withoutVendor = /[/:](.+)$/s.exec(id)?.[1] ?? id
  const name = /[^/]+$/.exec(id)?.[0] ?? id
  return [...new Set([name, withoutVendor, id].map((text) => text.toLowerCase().replace(/[_/:\s]+/g, '-')))]
}

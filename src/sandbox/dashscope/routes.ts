import { at, type Endpoint } from '../media/serve.ts'
import { isSoldFor } from '../model.ts'
import type { Protocol } from '../protocol.ts'
import { nativeEmbeddings } from './embeddings.ts'
import type { CodedRefusal } from '../refusal.ts'
import { type ImageAsk, makeImages, readImages } from './images.ts'
import { type Native, nativeManners, openNative } from './native.ts'
import { makeSpeech, readSpeech, type SpeechAsk } from './speech.ts'

/** One address for pictures and for speech: the model decides. */
const multimodal: Endpoint<Native, ImageAsk | SpeechAsk, CodedRefusal> = {
  manners: nativeManners,
  capabilities: ['images', 'edits', 'speech'],
  open: openNative,
  read: (body, model) => (isSoldFor(model, 'speech') ? readSpeech(body, model) : readImages(body, model)),
  make: (ask, call) => ('ms' in ask ? makeSpeech(ask, call) : makeImages(ask, call)),
}

/** Where CosyVoice and the newer lines speak. */
const synthesizer: Endpoint<Native, SpeechAsk, CodedRefusal> = {
  manners: nativeManners,
  capabilities: ['speech'],
  open: openNative,
  read: readSpeech,
  make: makeSpeech,
}

/** What Alibaba's own protocol answers at once; see `video` for its tasks. */
export const dashscopeProtocol: Protocol = (...mounted) => [
  ...at('/services/aigc/multimodal-generation/generation', multimodal)(...mounted),
  ...at('/services/audio/tts/SpeechSynthesizer', synthesizer)(...mounted),
  ...at('/services/embeddings/text-embedding/text-embedding', nativeEmbeddings)(...mounted),
]

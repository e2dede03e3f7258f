import { endpointAt, type Endpoint } from '../serve.ts'
import { isSoldFor } from '../model.ts'
import type { Protocol } from '../protocol.ts'
import { nativeEmbeddings } from './embeddings.ts'
import type { CodedRefusal } from '../refusal.ts'
import { type ImageAsk, makeImages, readImages } from './images.ts'
import { type Native, nativeDialect, openNative } from './native.ts'
import { makeSpeech, readSpeech, type SpeechAsk } from './speech.ts'

/** One path for images and speech: the model decides which. */
const multimodal: Endpoint<Native, ImageAsk | SpeechAsk, CodedRefusal> = {
  dialect: nativeDialect,
  capabilities: ['images', 'edits', 'speech'],
  open: openNative,
  read: (body, model) => (isSoldFor(model, 'speech') ? readSpeech(body, model) : readImages(body, model)),
  make: (ask, call) => ('ms' in ask ? makeSpeech(ask, call) : makeImages(ask, call)),
}

/** The path of CosyVoice and the newer speech models. */
const synthesizer: Endpoint<Native, SpeechAsk, CodedRefusal> = {
  dialect: nativeDialect,
  capabilities: ['speech'],
  open: openNative,
  read: readSpeech,
  make: makeSpeech,
}

/** The synchronous calls of Alibaba's own protocol. `video-dashscope` has its tasks. */
export const dashscopeProtocol: Protocol = (...mounted) => [
  ...endpointAt('/services/aigc/multimodal-generation/generation', multimodal)(...mounted),
  ...endpointAt('/services/audio/tts/SpeechSynthesizer', synthesizer)(...mounted),
  ...endpointAt('/services/embeddings/text-embedding/text-embedding', nativeEmbeddings)(...mounted),
]

import { type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import { recordAudio, sampleRate } from '../files/audio.ts'
import { invalid } from '../gemini/errors.ts'
import { piecesOf, spokenMs } from '../speech/speak.ts'
import type { InlineData } from './image.ts'

export type Speaking = { readonly kind: 'speech'; readonly ms: number; readonly tokens: number }

// prettier-ignore
const voices = [
  'Zephyr', 'Puck', 'Charon', 'Kore', 'Fenrir', 'Leda', 'Orus', 'Aoede', 'Callirrhoe', 'Autonoe', 'Enceladus',
  'Iapetus', 'Umbriel', 'Algieba', 'Despina', 'Erinome', 'Algenib', 'Rasalgethi', 'Laomedeia', 'Achernar', 'Alnilam',
  'Schedar', 'Gacrux', 'Pulcherrima', 'Achird', 'Zubenelgenubi', 'Vindemiatrix', 'Sadachbia', 'Sadaltager', 'Sulafat',
].map((name) => name.toLowerCase())

const msPerToken = 40

export function readSpeaking(config: Fields, text: string): Speaking {
  const { voiceConfig, multiSpeakerVoiceConfig } = fieldsIn(config.speechConfig)
  const speakers = itemsIn(fieldsIn(multiSpeakerVoiceConfig).speakerVoiceConfigs).map((speaker) => fieldsIn(speaker))
  const configs = [voiceConfig, ...speakers.map((speaker) => speaker.voiceConfig)].filter(isGiven)
  for (const chosen of configs) {
    const name = textIn(fieldsIn(fieldsIn(chosen).prebuiltVoiceConfig).voiceName)
    if (name === '' || voices.includes(name.toLowerCase())) continue
    throw invalid(`Voice name ${name} is not supported. Allowed voice names are: ${voices.toSorted().join(', ')}`)
  }
  const ms = spokenMs(text)
  return { kind: 'speech', ms, tokens: Math.ceil(ms / msPerToken) }
}

/** Raw samples without a header: the rate is part of the MIME type. A stream sends a second at a time. */
export function speaking({ ms }: Speaking, isStreaming: boolean): readonly InlineData[] {
  const audio = recordAudio('pcm', ms)
  const pieces = piecesOf(audio, isStreaming ? sampleRate * 2 : audio.length)
  const mimeType = `audio/L16;codec=pcm;rate=${sampleRate}`
  return Array.from(pieces, (piece) => ({ mimeType, data: Buffer.from(piece, 'latin1').toString('base64') }))
}

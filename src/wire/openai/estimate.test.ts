import { expect, test } from 'bun:test'
import type { Json, JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { openaiChat } from './chat.ts'
import { tokensIn } from './embeddings.ts'

const estimate = (native: JsonObject) => openaiChat.estimateInput({ native, inputTokensMax: 1_000_000 } as ChatAsk)
const said = (content: Json) => estimate({ messages: [{ role: 'user', content }] })

const words = 'a few words of which somebody has to say how many tokens they are'
const base64 = 'x'.repeat(9_000)

test('base64 data and URLs are not counted as text, and every image counts the same', () => {
  const audio = { type: 'input_audio', input_audio: { data: base64, format: 'wav' } }
  const file = { type: 'file', file: { file_data: `data:application/pdf;base64,${base64}` } }
  expect(said([audio, file])).toBeLessThan(30)
  const image = (url: string) => said([{ type: 'image_url', image_url: { url } }])
  const one = image('https://pictures.example/1.png')
  expect(one).toBeWithin(1_500, 1_600)
  expect(image(`data:image/png;base64,${base64}`)).toBe(one)
})

test('text that begins with data: is counted as text', () => {
  expect(said(`data: ${words}`)).toBeGreaterThanOrEqual(said(words))
  expect(tokensIn([`data: ${words}`])).toBeGreaterThanOrEqual(tokensIn([words]))
})

test('parameter names of tools and functions are counted as text', () => {
  const names = ['customer_identifier', 'shipping_address', 'delivery_date']
  const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]))
  const order = { name: 'order', parameters: { type: 'object', properties } }
  expect(estimate({ tools: [{ type: 'function', function: order }] })).toBeGreaterThan(30)
  expect(estimate({ functions: [order] })).toBeGreaterThan(30)
})

// The counts of OpenAI's o200k_base. Google's embeddings are charged by the estimate alone.
test.each([
  ['The quick brown fox jumps over the lazy dog, and then it sleeps in the warm afternoon sun.', 20],
  ['人工智能正在改变我们的生活方式,许多公司都在研究如何更好地利用这些技术。', 22],
  ['ปัญญาประดิษฐ์กำลังเปลี่ยนแปลงวิถีชีวิตของเราและหลายบริษัทกำลังศึกษาวิธีการใช้ประโยชน์จากเทคโนโลยีเหล่านี้', 46],
  ['ဉာဏ်ရည်တုသည် ကျွန်ုပ်တို့၏ နေထိုင်မှုပုံစံကို ပြောင်းလဲနေပြီး ကုမ္ပဏီများစွာက လေ့လာနေကြသည်။', 50],
  ['ሰው ሰራሽ አስተውሎት የአኗኗራችንን መንገድ እየቀየረ ነው እና ብዙ ኩባንያዎች እያጠኑት ነው።', 108],
  ['कृत्रिम बुद्धिमत्ता हमारे जीवन के तरीके को बदल रही है और कई कंपनियां इसका अध्ययन कर रही हैं।', 24],
  ['الذكاء الاصطناعي يغير طريقة حياتنا وتدرس العديد من الشركات كيفية الاستفادة منه بشكل أفضل.', 24],
])('%s has about %d tokens', (said, known) => {
  const counted = tokensIn([said])
  expect(counted).toBeGreaterThan(known * 0.7)
  expect(counted).toBeLessThan(known * 1.5)
})

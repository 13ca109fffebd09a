"""The words around what people put into blanks: what announces it, and what shows a remark."""

from __future__ import annotations

import re

from echo_hf.engines.rules.common_words import FIRST_PERSON
from echo_hf.engines.rules.multimodal.role_words import END, START
from echo_hf.engines.rules.verdict_words import COMPLAINT, PRAISE, SELF, TRIED
from echo_hf.engines.rules.words import words

# "mine:", "I went with", "我的："
LEAD = re.compile(
    rf"\W{{0,6}}(?:{START}(?:(?:here(?:['’]s| is| are)\s)?(?:mine|ours|my (?:version|turn|try|take"
    r"|go|one|attempt|example|values?|words?|pick|picks|choice|entry)|(?:the )?(?:first|second"
    r"|third|next) one|this one|(?:an? |one |my )?example|e\.?g|for (?:example|instance)"
    r"|filled in(?: with| as)?)|(?:i|we)(?: just)? (?:did|used|chose|picked|went (?:with|for)"
    r"|tried(?: it with)?|asked for|put(?: in)?|filled in|typed|took|made|entered|swapped in)"
    r"|went with|tried(?: it)? with|with|used|chose|picked|typed|(?:la m[ií]a|el m[ií]o|m[ií]o"
    r"|yo (?:puse|usé|elegí)|puse|probé con|con|ejemplo|por ejemplo)|(?:la mienne|le mien|moi"
    r"|j['’]ai (?:mis|pris|choisi|essayé)|avec|exemple|par exemple)|(?:meins|meine|bei mir"
    r"|ich (?:habe|hab|nahm)|mit|beispiel|zum beispiel|z\.\s?b)|(?:a minha|o meu|eu (?:usei"
    r"|coloquei|pus|escolhi)|usei|coloquei|exemplo|por exemplo)|(?:la mia|il mio|io ho (?:messo"
    rf"|usato|scelto)|ho (?:messo|usato|scelto)|esempio|per esempio)){END}|我的(?:是)?"
    r"|我用的?(?:是)?|我填的?(?:是)?|我选的?(?:是)?|例如|比如|示例|举例|例|这张(?:是|填)?|第一张"
    r"|(?:私|僕|俺|自分|うち)(?:は|の(?:は)?)|例えば|今回は|入れたのは)(?:\s?(?:is|are|was|were"
    rf"|it['’]s|es|est|ist|é|è|是|は){END})?(?P<colon>\s?[:：=→]|\s[-–—]\s)?\s{{0,3}}"
)
# With a noun behind them these make one thing, not two.
ATTRIBUTES = words(
    en="""red orange yellow green blue purple pink brown black white grey gray golden silver big
    small tiny giant little old young baby sea polar hot ice space school street""",
)
# A remark has one of these; what people put into blanks has not.
REMARKS = (
    FIRST_PERSON
    | PRAISE
    | COMPLAINT
    | SELF
    | TRIED
    | words(
        en="""you your yours it its this that these those is are was were be am do did does dont
        didnt cant wont can could would should will so too very really just how what why where when
        who please pls thanks thank thx hello hi yes no not never prompt prompts version attempt try
        first time times again everyone everybody here there got get looks look like wow lol lmao
        omg ok okay same still even only because if then than but let lets share sharing model image
        picture generation morning happy more less another bit what
        to below above comments comment reply replies alt link thread following next""",
        es="esto eso es está son que por favor gracias muy pero cuando si yo tú",
        fr="ceci cela est sont que merci très mais quand si tu vous moi",
        de="dies ist sind dass danke sehr aber wenn du ihr bitte",
        pt="isso isto é são que obrigado obrigada muito mas quando se você",
        it="questo è sono che grazie molto ma quando se tu",
    )
)
HAN_REMARK = re.compile(
    "[了吗呢吧啊呀嘛！？我你您这那]|什么|怎么|真的|可以|太|很|非常|好看|喜欢|です|ます|した|ない"
    "|でし|ください|かわい|すご|ね$|よ$|感謝|谢谢"
)
# Alone they are a reaction, whatever the blank.
REACTIONS = frozenset(
    "😍🔥👏🤩💯🙌👌❤🥰👍🤯😻💖🎉😂🤣😅😭🥹😱😮👀🙏✨👎🤮😬🙄💩😊😎🤔🫶💀🚀💪\ufe0f\u200d"
)

"""Phrases that ask for words in a picture; every repetition in them is bounded."""

from __future__ import annotations

import re

JSON = re.compile(r"\W{0,20}[{\[]\s{0,40}\"")
JSON_TEXT = re.compile(
    r"\"(?:[a-z_ ]{0,20})(?:text|title|caption|headline|slogan|label|words?|inscription|tagline"
    r"|typography|lettering|copy)(?:[a-z_ ]{0,12})\"\s?:\s?(?:\[\s?)?(?:\{|\"(?!(?:none|no|null"
    r"|n/a|without)\b)[^\"]{1,400}\")"
)
NO_TEXT = re.compile(
    r"\b(?:no|without(?: any)?|free of|avoid|sin|sans|ohne|kein(?:e|en)?|sem|senza"
    r"|nessun)\s(?:[\w-]{1,12},?\s){0,3}(?:texts?|words?|letters?|lettering|typography"
    r"|captions?|labels?|logos?|watermarks?|texto|texte|testo|palabras|mots|letras|wörter"
    r"|schrift)\b|(?:不要|无|無|没有|沒有|不含)(?:任何)?(?:文字|字|水印)|文字(?:なし|は入れない"
    r"|不要)"
)
QUOTED = re.compile(r"[\"“„«「『‘]\s?([^\"“”„«»「」『』‘’\n]{1,120}?)\s?[\"”“»」』’]")
CUE = re.compile(
    r"\b(?:texts?|words?|titles?|titled|says?|saying|reads?|reading|labels?|labell?ed|signs?"
    r"|captions?|slogans?|headlines?|inscription|letters|lettering|written|logo|tagline|heading"
    r"|subtitle|named|called|name|quote|typography|font|poster|cover|print(?:ed)?|engraved"
    r"|spell(?:s|ed|ing)?|texto|palabras?|título|dice|letrero|texte|mots?|titre|inscription"
    r"|wort|worte|titel|aufschrift|steht|palavras?|escrito|testo|parol[ae]|titolo|scritta)\b"
    r"|文字|写着|寫著|标题|標題|字样|字樣|标语|と書|タイトル|ロゴ|看板"
)
WORDED = re.compile(
    r"\b(?:the (?:words?|text|title|letters?|phrase|name|slogan|headline|caption|inscription"
    r"|number)\s[\"“«'‘(\[{\w]|that (?:says|reads)\s|(?:which|sign|shirt|cake|banner|mug|label"
    r"|bubble) (?:says|reads|saying|reading)\b|(?:saying|reading|titled|labell?ed"
    r"|spelling(?: out)?|written)\s?[\"“«:‘']|with the text|(?:text|title|caption|headline):"
    r"|text (?:reads|saying)|typograph\w{1,3}|lettering|calligraphy|with (?:bold |large |big "
    r"|clear )?text\b|(?:el|con el) texto|la palabra|las palabras|que diga|que dice"
    r"|con el título|le texte|le mot|les mots|le titre|avec le texte|qui dit|der text|das wort"
    r"|die worte|mit dem text|dem titel|mit der aufschrift|schriftzug|steht|o texto|a palavra"
    r"|as palavras|com o texto|que diz|o título|il testo|la parola|con la scritta|il titolo"
    r"|che dice)|文字|写着|寫著|写有|标题|標題|标语|標語|字样|字樣|题词|书法|書法|と書|と入れ"
    r"|文言|タイトル|キャッチコピー|フォント"
)
DOCUMENT = re.compile(
    r"\b(?:menus?|receipts?|infographics?|business cards?|invitations?|newspapers?"
    r"|magazine covers?|book covers?|album covers?|movie posters?|film posters?|(?:event"
    r"|concert|travel|propaganda|promotional|exhibition|vintage|retro|wanted|motivational"
    r"|satirical|advertising|art) posters?|posters? (?:for|with|about|titled|advertising|of)"
    r"|certificates?|diplomas?|flyers?|brochures?|calendars?|speech bubbles?|billboards?"
    r"|chalkboards?|whiteboards?|handwritten|recipe cards?|periodic table|tweets?|passports?"
    r"|(?:concert|train|boarding|movie|parking) (?:tickets?|pass)|boarding pass|crossword"
    r"|(?:neon|road|street|shop|wooden|warning|traffic|store) signs?|signage|logo for"
    r"|logo called|logo with (?:the )?name|word ?mark|product labels?|packaging label"
    r"|price tags?|(?:tarot|trading|greeting|birthday) card|diagram|flow ?chart|timeline"
    r"|worksheet|resume|invoice|report card|meme|comic strip|four[\s-]panel|4[\s-]panel"
    r"|screenshot|user interface|dashboard|ui mockup|nutrition (?:facts|label)|license plate"
    r"|slide|cheat sheet|menú|recibo|factura|infografía|tarjeta de|invitación|periódico|portada"
    r"|cartel|letrero|folleto|affiche|reçu|infographie|carte de visite|carton d['’]invitation"
    r"|journal|couverture de|enseigne|panneau|plakat|speisekarte|quittung|kassenbon|infografik"
    r"|visitenkarte|einladung|zeitung|titelseite|buchcover|schild|cartaz|cardápio|infográfico"
    r"|cartão de|convite|jornal|capa de|letreiro|locandina|manifesto|menù|scontrino|infografica"
    r"|biglietto|invito|giornale|copertina|insegna|cartello)\b|海报(?!风)|海報(?!風)|菜单|菜單"
    r"|收据|收據|小票|信息图|資訊圖|名片|邀请函|邀請函|报纸|報紙|封面|招牌|标签|標籤|贺卡|賀卡"
    r"|日历|思维导图|ポスター(?!風)|メニュー|レシート|インフォグラフィック|名刺|招待状|新聞"
    r"|表紙|看板|ラベル|吹き出し|チラシ|4コマ|四コマ|カレンダー"
)

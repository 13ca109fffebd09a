"""What a prompt asks to be done with pictures that go in with it, if any."""

from __future__ import annotations

import re
from dataclasses import dataclass

from echo_hf.engines.rules.folding import fold
from echo_hf.engines.rules.multimodal.edit_changes import Change, change_in
from echo_hf.engines.rules.multimodal.role_words import END, NOUN, PICTURED, START

LIVING = (
    r"(?:person|people|man|men|woman|women|girl|boy|guy|lady|baby|child|couple|family|animal|actor"
    r"|robot|monster|creature|mascot|figure|statue|hero)"
)
THING = (
    r"(?:object|icon|scene|place|landscape|street|building|apartment|kitchen|bedroom|bathroom"
    r"|living room|yard|shop|poster|book|cover|bottle|shoe|shoes|chair|sofa|plant|meme|map"
    r"|floor ?plan|artwork|art|subject|item|cartoon|comic|panel|page|text|menu|sign|card|render"
    r"|figurine|toy|doll|plushie|screenshot|frame|background)"
)
GIVEN = rf"(?:{NOUN}|{LIVING}|{THING})"
VERB = (
    r"(?:turn|make|transform|convert|restore|redraw|recreate|reimagine|restyle|retexture|put|place"
    r"|draw|paint|render|show|dress|edit|change|give|upscale|colou?ri[sz]e)"
)
# "In this image we can see ..." tells what to draw.
TELLS = (
    r"(?!,?\s(?:is|are|was|were|we|i|you|there|shows?|showing|consists?|contains?|has|have|can"
    r"|could|features?|depicts?|of|a|an|exudes|captures?|conveys|plane|must|should|will)\b)(?!,)"
)
ENGLISH = "|".join(
    (
        rf"(?:my|our)\s(?:[\w'-]{{1,14}}\s){{0,2}}?{GIVEN}",
        rf"(?:this|these)\s(?:[\w'-]{{1,14}}\s)?{NOUN}{TELLS}",
        rf"{VERB}\s(?:this|these|the (?:two|three)|both|me|us|my)",
        r"(?:turn|transform|convert|restore|redraw|edit|retexture|restyle|change)\sthe\s"
        rf"(?:\w{{1,14}}\s){{0,2}}?(?:{NOUN}|{LIVING}|subjects?)",
        rf"(?:{NOUN}|{LIVING}|subjects?)\s(?:in|from|on)\s(?:the|this|my)\s(?:\w{{1,12}}\s)?"
        rf"{PICTURED}",
        rf"(?:this|these)\s(?:{LIVING}|{THING}){TELLS}(?=[^.!?]{{0,200}}(?:$|[.!?\n]))",
        r"attach(?:ed|ment)s?(?!\s(?:to|with|on|by|at)\b)|uploaded",
        r"(?:provided|given|supplied|reference|input|original|source)\s"
        rf"(?:\w{{1,12}}\s){{0,2}}?{PICTURED}",
        r"(?:in|from|on|based on|using)\s(?:the|this|that|each|both)\s"
        r"(?:(?:first|second|third|1st|2nd|3rd|last|other|left|right|two|same)\s)?"
        rf"{PICTURED}{TELLS}",
        rf"(?:first|second|1st|2nd|both|two)\s{PICTURED}\s(?!of|frames?)",
        rf"{PICTURED}\s(?:one|two|[12])",
        r"(?:these|the|both|all)\s(?:two|three|four|2|3|4)"
        r"(?=\s(?:\w{1,12}\s)?(?:together|into|in one))",
        r"(?:of|as|with|like|featuring|around|behind|beside)\sme",
        r"(?:keep|preserve|maintain|retain|leave)\s(?:[\w',-]{1,16}\s){1,8}?"
        r"(?:the same|unchanged|exactly|intact|identical|as (?:it|they) (?:is|are)|where)",
        r"(?:do not|don['’]t|without)\s(?:change|changing|alter|altering)",
        r"(?:same|exact)\s(?:face|pose|person|composition|facial features)",
    )
)
_DEICTIC = {
    "en": ENGLISH,
    "es": r"(?:est[aeo]s?|mis?|la|el|las|los) (?:\w{1,12} )?(?:foto|fotos|fotografía|imagen"
    r"|imágenes|boceto|dibujo|retrato|garabato|selfie) (?:adjunt[ao]s?|de arriba|original"
    r"|subid[ao])|(?:est[aeo]s?|mis?) (?:\w{1,12} )?(?:foto|fotos|fotografía|imagen|imágenes"
    r"|boceto|dibujo|retrato|garabato|selfie|personaje|persona|gat[oa]|perr[oa]|casa|habitación"
    r"|cuarto|logo|robot)|(?:en|de) la (?:primera |segunda )?(?:foto|imagen)|est[ao]s dos"
    r"|sin cambiar|no cambies|conviérte(?:me|lo)|mantén (?:\w{1,12} ){1,5}igual",
    "fr": r"(?:cette|ces|ma|mes) (?:\w{1,12} )?(?:photos?|images?|esquisse|personne|maison|pièce"
    r"|chambre)|(?:ce|cet|mon) (?:\w{1,12} )?(?:dessin|croquis|portrait|personnage|logo|chat"
    r"|chien|robot|gribouillage)|(?:photo|image) (?:jointe|ci-jointe|d['’]origine|fournie)|(?:sur"
    r"|de) la (?:première |deuxième )?photo|ces deux|sans (?:changer|modifier)|ne (?:change"
    r"|modifie|touche)",
    "de": r"(?:dies(?:e|es|er|en|em)|mein(?:e|es|er|en|em)?) (?:\w{1,14} )?(?:foto|fotos|bild"
    r"|bilder|zeichnung|skizze|person|figur|katze|kater|hund|zimmer|haus|porträt|logo|roboter"
    r"|selfie|kritzelei)|(?:auf|aus|im) (?:dem|den)? ?(?:ersten |zweiten )?(?:foto|angehängten)"
    r"|beigefügte[sn]?|angehängte[sn]?|diese beiden|ohne (?:\w{1,12} ){0,3}zu (?:ändern"
    r"|verändern)|(?:lass|lasse) (?:\w{1,12} ){1,6}(?:wie|gleich|unverändert)",
    "pt": r"(?:est[ae]s?|ess[ae]s?|minhas?|meus?) (?:\w{1,12} )?(?:fotos?|imagem|imagens|desenho"
    r"|esboço|rascunho|personagem|pessoa|gat[oa]|cachorr[oa]|quarto|casa|retrato|logo|robô"
    r"|selfie)|(?:foto|imagem) (?:anexa|em anexo|original)|(?:da|na) (?:primeira "
    r"|segunda )?(?:foto|imagem)|sem (?:mudar|alterar)|não mude",
    "it": r"(?:quest[aeo]|mi[ao]|mie|miei) (?:\w{1,12} )?(?:foto|immagin[ei]|schizzo|disegno"
    r"|bozzetto|personaggio|persona|gatt[oa]|cane|stanza|casa|ritratto|logo|robot|selfie)|(?:foto"
    r"|immagine) (?:allegata|originale)|(?:nella|dalla|della) (?:prima |seconda )?(?:foto"
    r"|immagine)|queste due|senza (?:cambiare|modificare)",
}
_DEICTIC_HAN = (
    "[这這此](?:[张張幅个個]|些|两张|兩張|几张)?(?:老|旧|手绘)?(?:照片|图|圖|画|畫|相片|线稿|線稿"
    "|草图|涂鸦|人物|角色|人|猫|狗|机器人|房间|logo)|[图圖](?:中|里|裡|上)(?!的?(?:文字|标题))"
    "|(?:照片|图片|圖片|画面)(?:中的|里的|裡的|里|上的)|(?:根据|根據|基于|使用|将|將|把)(?:照片"
    "|图片|圖片|图像|圖像)|所附|图片人物|该(?:照片|图)|上传|上傳|附件|附图|参考[图圖]|參考[图圖]"
    "|原[图圖]|我的(?:照片|自拍|头像|猫|狗|画|脸)|[这這](?:两|兩|几|幾)[张張个]|第[一二12][张張]"
    "|[图圖][一二12]|保持[^。\n]{0,16}不变|不要改[变動动]|不变(?:。|，|$)|[将將把](?:他|她|它|我"
    "|背景)|この(?:\\w{0,6}?)(?:写真|画像|絵|線画|イラスト|スケッチ|落書き|らくがき|ラフ|キャラ"
    "|人物|人|子|猫|犬|ロボット|部屋|ロゴ|家|風景)|添付|この[2２二3３三]|[1１一]枚目|写真の(?:人"
    "|中|猫|犬)|(?:私|僕|俺|うち|自分)の(?:写真|顔|猫|犬|絵|部屋|子)|変えないで|そのまま(?:に|で"
    "|残)|変更しないで|参考画像|元の(?:写真|画像|絵)"
)
# An instruction that begins like this changes something that is there.
_FIRST = (
    r"(?:(?:please|pls|can you|could you|now|then|ok|okay|just|let['’]s|bitte"
    r"|por favor)\W{1,2}){0,3}(?:remove|erase|delete|get rid of|replace|swap|restore|colou?ri[sz]e"
    r"|recolou?r|unblur|deblur|sharpen|retouch|relight|denoise|upscale|uncrop|outpaint|inpaint"
    r"|enhance|clean up|fix|repair|crop|add|retexture|what if (?:the|there|he|she)|(?:there|he|she"
    r"|it|they) should|(?:put|place) (?:an? |some |the )?(?:\w{1,14} ){1,5}?(?:to|on|onto|in|into"
    r"|next to|behind|near|under|over|beside) (?:the|it|him|her|them|his|their|its)|(?:change|turn"
    r"|make|let|give|have|open|close|take away) (?:the|his|her|its|their|him|it|all|them)|(?:quita"
    r"|elimina|borra|cambia|reemplaza|restaura|colorea|añade|agrega|enlève|supprime|retire"
    r"|remplace|restaure|colorise|ajoute|entferne|ersetze|ändere|restauriere|koloriere|remova|tire"
    r"|troque|restaure|adicione|rimuovi|togli|sostituisci|restaura|colora|aggiungi))"
)
_FIRST_HAN = (
    "(?:请|請|帮我|幫我)?(?:去掉|去除|移除|换成|換成|把背景|抠|摳|修复|修復|给.{0,8}上色|上色)"
)
DEICTIC = re.compile(f"{START}(?:{'|'.join(_DEICTIC.values())}){END}|{_DEICTIC_HAN}")
FIRST = re.compile(rf"\W{{0,6}}(?:{_FIRST}{END}|{_FIRST_HAN})")
SEVERAL = re.compile(
    rf"{START}(?:(?:these|the|both|my) (?:two|three|2|3)|both (?:of )?(?:the |these )?{PICTURED}"
    rf"|(?:second|2nd|third|3rd|last|other) {PICTURED}|{PICTURED} (?:two|three|[23])|est[ao]s dos"
    r"|segunda (?:foto|imagen|imagem)|ces deux|deuxième (?:photo|image)|diese beiden"
    rf"|zweiten (?:foto|bild)|queste due|seconda (?:foto|immagine)|estas duas){END}"
    "|[这這][两兩]|第[二2][张張]|[图圖][二2]|この[2２二]|[2２二]枚目"
)
THREE = re.compile(
    rf"{START}(?:(?:these|the|all|my) (?:three|3)|(?:third|3rd) {PICTURED}|{PICTURED} (?:three"
    rf"|3)){END}"
    "|[这這](?:三|3)|第[三3][张張]|[图圖][三3]|この[3３三]|[3３三]枚目"
)


@dataclass(frozen=True)
class Edit:
    """What a prompt needs beside words.

    Attributes:
        inputs: How many pictures go in, at least; none when words are enough.
        change: How a result differs from what went in, null when a look cannot tell.
    """

    inputs: int
    change: Change | None


def read_edit(prompt: str) -> Edit:
    """Reads what a prompt needs beside words.

    Args:
        prompt: A prompt.

    Returns:
        What it needs.

    Example:
        >>> read_edit("Turn this photo into a night scene")
        Edit(inputs=1, change='darken')
        >>> read_edit("A night scene with a photo on the wall").inputs
        0
    """
    folded = fold(prompt)
    if not (DEICTIC.search(folded) or FIRST.match(folded)):
        return Edit(0, None)
    several = 3 if THREE.search(folded) else 2 if SEVERAL.search(folded) else 1
    return Edit(several, change_in(folded))
